// Random noise, and the base class of layers that apply it during training.
#pragma once

#include <optional>

#include <keel/layers/layer.h>
#include <keel/layers/seed_generator.h>

namespace keel {

namespace noise {

// Returns 1 for kept elements and 0 for dropped ones; an element is dropped with probability
// `rate`. `dtype` must be floating.
Tensor kept(const Shape& shape, DType dtype, double rate, const RandomNumbers& random);
// Returns normally distributed numbers.
Tensor normal(const Shape& shape, DType dtype, double mean, double stddev,
              const RandomNumbers& random);
// Returns x / (1 - rate) for kept elements and 0 for dropped ones. Differentiable; the tape stores
// no mask, because the gradient draws it again. Throws TypeError unless x is floating.
Tensor dropout(const Tensor& x, double rate, const RandomNumbers& random);
// Shares the choice among all elements along dimensions where `shape` is 1.
Tensor dropout(const Tensor& x, double rate, const Shape& shape, const RandomNumbers& random);

// Returns the shape of the noise for x: `wanted`, with unknown dimensions replaced by those of x.
// Throws ValueError, prefixed with `caller`, unless it has x's rank and each dimension is x's or 1.
Shape shape_for(const Shape& x, const Shape& wanted, const std::string& caller);
// Throws ValueError, prefixed with `caller`, unless 0 <= rate and rate <= 1, or rate < 1 if
// `below_one`.
void check_rate(double rate, bool below_one, const std::string& caller);
// Throws ValueError, prefixed with `caller`, if a dimension is 0.
void check_shape(const std::optional<Shape>& wanted, const std::string& caller);

}  // namespace noise

// Base class of the noise layers. Returns x outside of training, otherwise applies noise drawn by a
// SeedGenerator. Masks are passed through.
class NoiseLayer : public TensorLayer {
 public:
  bool supports_masking() const final { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const final;

 protected:
  // `options` must have a seed in addition to name, trainable and dtype.
  template <class Options>
  NoiseLayer(const char* class_name, Options& options)
      : TensorLayer(class_name, options), random_(options.seed) {}

  // Returns false if x is returned unchanged in training, too.
  virtual bool is_noisy() const = 0;
  // Applies noise to a floating x that is not symbolic.
  virtual Tensor disturb(const Tensor& x, const RandomNumbers& random) const = 0;
  std::string caller() const { return class_name() + " " + name(); }

 private:
  void build_weights(const TensorSpec& input) final;
  // Throws TypeError in training unless x is floating.
  Tensor call(const Tensor& x, const CallContext& context) final;

  SeedGenerator random_;
};

}  // namespace keel
