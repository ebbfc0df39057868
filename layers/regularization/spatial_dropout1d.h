// SpatialDropout1D: sets whole features of sequences to zero at random while training
// (keras.layers.SpatialDropout1D; Tompson et al. 2014).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

struct SpatialDropout1DOptions {
  double rate = 0.5;                 // in [0, 1]: the chance of a feature to be dropped
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("rate", self.rate);
    field("seed", self.seed);
  }
};

// Dropout of [batch, steps, features] with one choice for all steps of a feature of a sample.
class SpatialDropout1DLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "SpatialDropout1D";
  using Options = SpatialDropout1DOptions;
  // ValueError unless 0 <= rate <= 1.
  explicit SpatialDropout1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  // ValueError unless x is of rank 3.
  Tensor disturb(const Tensor& x, const RandomNumbers& random) const override;

  const Options options_;
};

namespace layers {
using SpatialDropout1D = LayerHandle<SpatialDropout1DLayer>;
}

}  // namespace keel
