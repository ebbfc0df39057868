// ContrastLimitedAdaptiveHistogramEqualization, which equalizes images by tiles.
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of ContrastLimitedAdaptiveHistogramEqualization.
struct ContrastLimitedAdaptiveHistogramEqualizationOptions {
  ValueRange value_range = {0, 255};          // of the pixels
  double clip_limit = 4.0;                    // greatest count of a level, in means; 0: no limit
  Length2D tile_grid_size = 8;                // tiles along the height and the width, > 0
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("value_range", self.value_range);
    field("clip_limit", self.clip_limit);
    field("tile_grid_size", self.tile_grid_size);
  }
};

// Equalizes each channel of each image by the histograms of tiles
// (keras.layers.ContrastLimitedAdaptiveHistogramEqualization; Zuiderveld 1994), in training and
// outside. Input is described in layers/image/image_layer.h; output has the same shape. There are
// 256 levels. Counts above clip_limit times the mean count are spread evenly over all levels, which
// limits the contrast. A pixel is mapped by the four nearest tiles, weighted by distance. Images
// are mirrored at the end, with the last pixel, to fill the last tiles; Keras before 3.16 repeats
// the last pixel on its PyTorch backend. Integer images keep their dtype; their results
// are cut to whole numbers. Results have no gradient; labels, masks and boxes do not change. Throws
// ValueError for sizes that are not positive and for an unknown data_format.
class ContrastLimitedAdaptiveHistogramEqualizationLayer final
    : public OptionsLayer<ContrastLimitedAdaptiveHistogramEqualizationOptions, ImageLayer> {
 public:
  static constexpr char kClassName[] = "ContrastLimitedAdaptiveHistogramEqualization";
  explicit ContrastLimitedAdaptiveHistogramEqualizationLayer(Options options);

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom& random) const override;
  DType output_dtype(DType input) const override { return is_floating(input) ? dtype() : input; }
  bool rounds_integers() const override { return false; }
};

namespace layers {
// A handle to the layer, under Keras's name.
using ContrastLimitedAdaptiveHistogramEqualization =
    LayerHandle<ContrastLimitedAdaptiveHistogramEqualizationLayer>;
}  // namespace layers

}  // namespace keel
