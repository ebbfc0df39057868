// Layers that regularize a model: dropout, noise and penalties on activations.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>

namespace keel {

// Base class of the noise layers. Outside of training they return their input x; in training they
// apply noise drawn by a SeedGenerator. The noise depends only on the seed, the number of previous
// training calls, the replica and the position of the element, not on the number of threads. The
// number of calls is the variable `seed_generator_state` (int64, shape {1}), so checkpoints restore
// it. Masks are passed through. Throws TypeError in training unless x is floating.
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
  virtual Tensor perturb(const Tensor& x, const RandomNumbers& random) const = 0;
  std::string caller() const { return class_name() + " " + name(); }

 private:
  void build_weights(const TensorSpec& input) final;
  Tensor call(const Tensor& x, const CallContext& context) final;

  SeedGenerator random_;
};

// Options of Dropout and AlphaDropout.
struct DropoutOptions {
  double rate = 0.5;  // probability that an element is dropped, in [0, 1]; AlphaDropout: below 1
  // 1: share the choice along this axis; unknown: the input's size.
  std::optional<Shape> noise_shape = {};
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("rate", self.rate);
    field("noise_shape", self.noise_shape);
    field("seed", self.seed);
  }
};

// In training, returns x / (1 - rate) for kept elements and 0 for dropped ones
// (keras.layers.Dropout). Throws ValueError in training if noise_shape does not broadcast to x.
class DropoutLayer final : public OptionsLayer<DropoutOptions, NoiseLayer> {
 public:
  static constexpr char kClassName[] = "Dropout";
  // Throws ValueError unless 0 <= rate <= 1 and the dimensions of noise_shape are positive.
  explicit DropoutLayer(Options options);

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor perturb(const Tensor& x, const RandomNumbers& random) const override;
};

// Options of SpatialDropout1D and GaussianDropout.
struct SpatialDropout1DOptions {
  double rate = 0.5;  // probability that a feature is dropped, in [0, 1]; GaussianDropout: below 1
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("rate", self.rate);
    field("seed", self.seed);
  }
};

// Applies dropout to [batch, steps, features]; all steps of a feature of a sample share one choice
// (keras.layers.SpatialDropout1D; Tompson et al. 2014). Throws ValueError in training for an input
// of another rank.
class SpatialDropout1DLayer final : public OptionsLayer<SpatialDropout1DOptions, NoiseLayer> {
 public:
  static constexpr char kClassName[] = "SpatialDropout1D";
  // Throws ValueError unless 0 <= rate <= 1.
  explicit SpatialDropout1DLayer(Options options);

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor perturb(const Tensor& x, const RandomNumbers& random) const override;
};

// Dropout for selu (keras.layers.AlphaDropout; Klambauer et al. 2017). In training, computes a x +
// b for kept elements and a s + b for dropped ones, where s is the limit of selu at minus infinity.
// a and b are chosen so that inputs with mean 0 and variance 1 keep both. Throws ValueError in
// training if noise_shape does not broadcast to x.
class AlphaDropoutLayer final : public OptionsLayer<DropoutOptions, NoiseLayer> {
 public:
  static constexpr char kClassName[] = "AlphaDropout";
  // Throws ValueError unless 0 <= rate < 1 and the dimensions of noise_shape are positive.
  explicit AlphaDropoutLayer(Options options);

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor perturb(const Tensor& x, const RandomNumbers& random) const override;
};

// In training, multiplies x by normal noise with mean 1 and standard deviation sqrt(rate / (1 -
// rate)), which is that of Dropout with this rate (keras.layers.GaussianDropout; Srivastava et al.
// 2014).
class GaussianDropoutLayer final : public OptionsLayer<SpatialDropout1DOptions, NoiseLayer> {
 public:
  static constexpr char kClassName[] = "GaussianDropout";
  // Throws ValueError unless 0 <= rate < 1.
  explicit GaussianDropoutLayer(Options options);

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor perturb(const Tensor& x, const RandomNumbers& random) const override;
};

// Options of GaussianNoise.
struct GaussianNoiseOptions {
  double stddev = 0.0;               // standard deviation in [0, 1], as in Keras
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("stddev", self.stddev);
    field("seed", self.seed);
  }
};

// In training, adds normal noise with mean 0 (keras.layers.GaussianNoise).
class GaussianNoiseLayer final : public OptionsLayer<GaussianNoiseOptions, NoiseLayer> {
 public:
  static constexpr char kClassName[] = "GaussianNoise";
  // Throws ValueError unless 0 <= stddev <= 1.
  explicit GaussianNoiseLayer(Options options);

 private:
  bool is_noisy() const override { return options_.stddev > 0; }
  Tensor perturb(const Tensor& x, const RandomNumbers& random) const override;
};

// Options of ActivityRegularization.
struct ActivityRegularizationOptions {
  double l1 = 0.0;  // factor of the sum of |x|
  double l2 = 0.0;  // factor of the sum of x^2
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("l1", self.l1);
    field("l2", self.l2);
  }
};

// Returns x unchanged and adds l1 * sum |x| + l2 * sum x^2 to losses()
// (keras.layers.ActivityRegularization).
class ActivityRegularizationLayer final : public OptionsLayer<ActivityRegularizationOptions> {
 public:
  static constexpr char kClassName[] = "ActivityRegularization";
  explicit ActivityRegularizationLayer(Options options)
      : OptionsLayer(kClassName, std::move(options)) {
    set_activity_regularizer(regularizers::l1_l2(options_.l1, options_.l2));
  }
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& x, const CallContext&) override { return x; }
};

namespace layers {
// Handles to the layers, under Keras's names.
using Dropout = LayerHandle<DropoutLayer>;
using SpatialDropout1D = LayerHandle<SpatialDropout1DLayer>;
using AlphaDropout = LayerHandle<AlphaDropoutLayer>;
using GaussianDropout = LayerHandle<GaussianDropoutLayer>;
using GaussianNoise = LayerHandle<GaussianNoiseLayer>;
using ActivityRegularization = LayerHandle<ActivityRegularizationLayer>;
}  // namespace layers

}  // namespace keel
