// Dropout: sets inputs to zero at random while training (keras.layers.Dropout).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

struct DropoutOptions {
  double rate = 0.5;                      // in [0, 1]: the chance of an element to be dropped
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

// Training: x / (1 - rate) where an element is kept, 0 where it is dropped. Otherwise x.
// Which elements are dropped is a function of the seed, the number of training calls so far, the
// replica and the element's position, whatever the number of threads. The number of calls is a
// variable, `seed_generator_state` (int64, shape {1}), so that checkpoints take it up again.
// ValueError in training for a noise_shape that does not broadcast to x.
class DropoutLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "Dropout";
  using Options = DropoutOptions;
  // ValueError unless 0 <= rate <= 1 and dimensions of noise_shape are positive.
  explicit DropoutLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor disturb(const Tensor& x, const RandomNumbers& random) const override;

  const Options options_;
};

namespace layers {
using Dropout = LayerHandle<DropoutLayer>;
}

}  // namespace keel
