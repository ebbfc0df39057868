// GaussianNoise: adds normally distributed noise during training (keras.layers.GaussianNoise).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

// Options of GaussianNoise.
struct GaussianNoiseOptions {
  double stddev = 0.0;               // standard deviation in [0, 1], as in Keras
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("stddev", self.stddev);
    field("seed", self.seed);
  }
};

// In training, adds normal noise with mean 0; otherwise returns x.
class GaussianNoiseLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "GaussianNoise";
  using Options = GaussianNoiseOptions;
  // Throws ValueError unless 0 <= stddev <= 1.
  explicit GaussianNoiseLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  bool is_noisy() const override { return options_.stddev > 0; }
  Tensor disturb(const Tensor& x, const RandomNumbers& random) const override;

  const Options options_;
};

namespace layers {
using GaussianNoise = LayerHandle<GaussianNoiseLayer>;
}

}  // namespace keel
