// GaussianDropout: multiplies by normally distributed noise with mean 1 during training
// (keras.layers.GaussianDropout; Srivastava et al. 2014).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

// Options of GaussianDropout.
struct GaussianDropoutOptions {
  double rate = 0.5;                 // in [0, 1)
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

// In training, multiplies x by normal noise with mean 1 and standard deviation sqrt(rate / (1 -
// rate)), which is that of Dropout with this rate; otherwise returns x.
class GaussianDropoutLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "GaussianDropout";
  using Options = GaussianDropoutOptions;
  // Throws ValueError unless 0 <= rate < 1.
  explicit GaussianDropoutLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor disturb(const Tensor& x, const RandomNumbers& random) const override;

  const Options options_;
};

namespace layers {
using GaussianDropout = LayerHandle<GaussianDropoutLayer>;
}

}  // namespace keel
