// AlphaDropout: dropout that keeps mean 0 and variance 1, for selu (keras.layers.AlphaDropout;
// Klambauer et al. 2017).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

struct AlphaDropoutOptions {
  double rate = 0.5;                      // in [0, 1): the chance of an element to be dropped
  std::optional<Shape> noise_shape = {};  // 1: one choice for all along it; unknown: the input's
  std::optional<int64_t> seed = {};       // unset: the next stream of set_random_seed
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

// a x + b where an element is kept, a s + b where it is dropped: s is the least value of selu, and
// a and b are such that inputs of mean 0 and variance 1 keep both.
// ValueError in training for a noise_shape that does not broadcast to x.
class AlphaDropoutLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "AlphaDropout";
  using Options = AlphaDropoutOptions;
  // ValueError unless 0 <= rate < 1 and dimensions of noise_shape are positive.
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
