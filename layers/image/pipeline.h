// Layers that prepare data sets of images: Pipeline and MaxNumBoundingBoxes.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/image/image_layer.h>

namespace keel {

// Options of Pipeline.
struct PipelineOptions {
  std::vector<LayerHandle<Layer>> layers = {};  // required, although it may be empty
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Passes the result of each layer to the next one (keras.layers.Pipeline). Unlike Sequential, it is
// a layer and not a model. Inputs are those of the first layer, such as a dict of images and
// labels. Configs contain the layers and the name, as in Keras.
class PipelineLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "Pipeline";
  using Options = PipelineOptions;
  explicit PipelineLayer(Options options);

  std::vector<std::string> sublayer_attributes() const override;
  Config get_config() const override;
  // Creates the layer from its config, and the layers inside it. Throws ValueError if the config
  // has no layers.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
};

// Options of MaxNumBoundingBoxes.
struct MaxNumBoundingBoxesOptions {
  int64_t max_number = 0;                     // required; boxes of each image, > 0
  int64_t fill_value = -1;                    // coordinates and label of boxes that are added
  std::string data_format = "channels_last";  // or "channels_first"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("max_number", self.max_number);
    field("fill_value", self.fill_value);
  }
};

// Gives each image the same number of bounding boxes (keras.layers.MaxNumBoundingBoxes). Input is a
// dict whose key "bounding_boxes" has "boxes" [batch, boxes, 4] and "labels" [batch, boxes]. Boxes
// beyond max_number are dropped, and missing ones are added with fill_value. Other keys, and images
// without boxes, are returned unchanged. Throws ValueError for other keys or shapes of the boxes.
class MaxNumBoundingBoxesLayer final : public OptionsLayer<MaxNumBoundingBoxesOptions, ImageLayer> {
 public:
  static constexpr char kClassName[] = "MaxNumBoundingBoxes";
  // Throws ValueError unless max_number > 0.
  explicit MaxNumBoundingBoxesLayer(Options options);
  Config get_config() const override;

 private:
  Tensor transform_images(const Tensor& images, const ImageRandom&) const override {
    return images;
  }
  Tensors transform_boxes(const Tensors& boxes) const override;
  DType output_dtype(DType input) const override { return input; }
  Tensor limited(const Tensor& x) const;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Pipeline = LayerHandle<PipelineLayer>;
using MaxNumBoundingBoxes = LayerHandle<MaxNumBoundingBoxesLayer>;
}  // namespace layers

}  // namespace keel
