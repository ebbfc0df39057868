// SpatialDropout1D: sets whole features of sequences to zero at random during training
// (keras.layers.SpatialDropout1D; Tompson et al. 2014).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

// Options of SpatialDropout1D.
struct SpatialDropout1DOptions {
  double rate = 0.5;                 // probability that a feature is dropped, in [0, 1]
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

// Applies dropout to [batch, steps, features]; all steps of a feature of a sample share one choice.
class SpatialDropout1DLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "SpatialDropout1D";
  using Options = SpatialDropout1DOptions;
  // Throws ValueError unless 0 <= rate <= 1.
  explicit SpatialDropout1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  // Throws ValueError unless x has rank 3.
  Tensor disturb(const Tensor& x, const RandomNumbers& random) const override;

  const Options options_;
};

namespace layers {
using SpatialDropout1D = LayerHandle<SpatialDropout1DLayer>;
}

}  // namespace keel
