// Dropout: sets inputs to zero at random during training (keras.layers.Dropout).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/noise.h>

namespace keel {

// Options of Dropout.
struct DropoutOptions {
  double rate = 0.5;  // probability that an element is dropped, in [0, 1]
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

// In training, returns x / (1 - rate) for kept elements and 0 for dropped ones; otherwise returns
// x.
//
// The choice depends only on the seed, the number of previous training calls, the replica and the
// position of the element, not on the number of threads. The number of calls is the variable
// `seed_generator_state` (int64, shape {1}), so checkpoints restore it. Throws ValueError in
// training if noise_shape does not broadcast to x.
class DropoutLayer final : public NoiseLayer {
 public:
  static constexpr char kClassName[] = "Dropout";
  using Options = DropoutOptions;
  // Throws ValueError unless 0 <= rate <= 1 and the dimensions of noise_shape are positive.
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
