// SpatialDropout2D and SpatialDropout3D: dropout of whole channels of images and volumes.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/regularization/regularization.h>

namespace keel {

// Options of SpatialDropout2D and SpatialDropout3D.
struct SpatialDropoutOptions {
  double rate = 0.5;                          // probability that a channel is dropped, in [0, 1]
  std::string data_format = "channels_last";  // or "channels_first": channels are axis 1
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("rate", self.rate);
    field("data_format", self.data_format);
    field("seed", self.seed);
  }
};

// Applies dropout to [batch, spatial axes ..., channels] or, with channels_first, [batch, channels,
// spatial axes ...], where N is the number of spatial axes. All positions of a channel of a sample
// share one choice (keras.layers.SpatialDropout2D, SpatialDropout3D; Tompson et al. 2014). Throws
// ValueError in training for an input of another rank.
template <ClassName kName, int N>
class SpatialDropoutLayer final : public OptionsLayer<SpatialDropoutOptions, NoiseLayer> {
 public:
  static constexpr const char* kClassName = kName.text;
  // Throws ValueError unless 0 <= rate <= 1, and for an unknown data_format.
  explicit SpatialDropoutLayer(Options options);

 private:
  bool is_noisy() const override { return options_.rate > 0; }
  Tensor perturb(const Tensor& x, const RandomNumbers& random) const override;
};

// The layers of this family.
using SpatialDropout2DLayer = SpatialDropoutLayer<"SpatialDropout2D", 2>;
using SpatialDropout3DLayer = SpatialDropoutLayer<"SpatialDropout3D", 3>;

namespace layers {
// Handles to the layers, under Keras's names.
using SpatialDropout2D = LayerHandle<SpatialDropout2DLayer>;
using SpatialDropout3D = LayerHandle<SpatialDropout3DLayer>;
}  // namespace layers

}  // namespace keel
