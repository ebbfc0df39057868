// Noise of layers that disturb their input while training.
#pragma once

#include <optional>

#include <keel/layers/layer.h>
#include <keel/layers/seed_generator.h>

namespace keel {

namespace noise {

// 1 where an element is kept, 0 where it is dropped, which has the chance `rate`. `dtype` is
// floating.
Tensor kept(const Shape& shape, DType dtype, double rate, const RandomNumbers& random);
// Normal numbers.
Tensor normal(const Shape& shape, DType dtype, double mean, double stddev,
              const RandomNumbers& random);
// x / (1 - rate) where an element is kept, 0 where it is dropped. Differentiable; a tape keeps
// nothing of it. TypeError unless x is floating.
Tensor dropout(const Tensor& x, double rate, const RandomNumbers& random);
// The same with one choice for all elements along dimensions where `shape` has 1.
Tensor dropout(const Tensor& x, double rate, const Shape& shape, const RandomNumbers& random);

// The shape of noise for x: `wanted`, where unknown dimensions are those of x. ValueError, naming
// `caller`, unless it has x's rank and each dimension is x's or 1.
Shape shape_for(const Shape& x, const Shape& wanted, const std::string& caller);
// ValueError, naming `caller`, unless 0 <= rate, and rate <= 1, or < 1 if `below_one`.
void check_rate(double rate, bool below_one, const std::string& caller);
// ValueError, naming `caller`, for a dimension 0.
void check_shape(const std::optional<Shape>& wanted, const std::string& caller);

}  // namespace noise

// Base of the layers: x outside training, noise as SeedGenerator draws it otherwise. Masks pass.
class NoiseLayer : public TensorLayer {
 public:
  bool supports_masking() const final { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const final;

 protected:
  // `options` has a seed, beside name, trainable and dtype.
  template <class Options>
  NoiseLayer(const char* class_name, Options& options)
      : TensorLayer(class_name, options), random_(options.seed) {}

  // False if x passes in training too.
  virtual bool is_noisy() const = 0;
  // Of a floating x that is not symbolic.
  virtual Tensor disturb(const Tensor& x, const RandomNumbers& random) const = 0;
  std::string caller() const { return class_name() + " " + name(); }

 private:
  void build_weights(const TensorSpec& input) final;
  // TypeError in training unless x is floating.
  Tensor call(const Tensor& x, const CallContext& context) final;

  SeedGenerator random_;
};

}  // namespace keel
