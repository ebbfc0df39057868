// AlphaDropout: dropout for selu that preserves mean 0 and variance 1 (keras.layers.AlphaDropout;
// Klambauer et al. 2017).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

// Options of AlphaDropout.
struct AlphaDropoutOptions {
  double rate = 0.5;  // probability that an element is dropped, in [0, 1)
  // 1: share the choice along this axis; unknown: the input's size.
  std::optional<Shape> noise_shape = {};
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("rate", self.rate);
    field("noise_shape", self.noise_shape);
    field("seed", self.seed);
  }
};

// In training, computes a x + b for kept elements and a s + b for dropped ones, where s is the
// limit of selu at minus infinity. a and b are chosen so that inputs with mean 0 and variance 1
// keep both. Throws ValueError in training if noise_shape does not broadcast to x.
class AlphaDropoutLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "AlphaDropout";
  using Options = AlphaDropoutOptions;
  // Throws ValueError unless 0 <= rate < 1 and the dimensions of noise_shape are positive.
  explicit AlphaDropoutLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor disturb(const Tensor& x, const RandomNumbers& random) const override;

  const Options options_;
};

namespace layers {
using AlphaDropout = LayerHandle<AlphaDropoutLayer>;
}

}  // namespace keel
