#include <keel/layers/image/pipeline.h>

#include <algorithm>
#include <map>

#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/registry.h>

namespace keel {

// ---- Pipeline.

PipelineLayer::PipelineLayer(Options options) : Layer(kClassName, options) {
  for (const auto& layer : options.layers) track(layer);
}

void PipelineLayer::build_weights(const Specs& inputs) {
  Specs specs = inputs;
  for (const auto& layer : sublayers()) specs = layer->compute_output_spec(specs);
}

Tensors PipelineLayer::call(const Tensors& inputs, const CallContext&) {
  Tensors x = inputs;
  for (const auto& layer : sublayers()) x = layer(x);
  return x;
}

// Keras numbers the layers of a list that are of the same class.
std::vector<std::string> PipelineLayer::sublayer_attributes() const {
  std::vector<std::string> out;
  std::map<std::string, int> used;
  for (const auto& layer : sublayers()) {
    std::string name = to_snake_case(layer->class_name());
    if (const int k = used[name]++; k > 0) name += "_" + std::to_string(k);
    out.push_back("_pipeline_layers/" + name);
  }
  return out;
}

Config PipelineLayer::get_config() const {
  Config::List layers;
  for (const auto& layer : sublayers()) layers.push_back(layers::serialize(*layer));
  return Config::dict({{"layers", Config(std::move(layers))}, {"name", name()}});
}

std::shared_ptr<Layer> PipelineLayer::from_config(const Config& config) {
  Options options;
  const Config* const layers = config.find("layers");
  if (layers == nullptr || !layers->is_list()) {
    throw ValueError("Pipeline: the config must have a list of layers");
  }
  for (const Config& layer : layers->items()) {
    options.layers.push_back(layers::deserialize(layer));
  }
  const Config* const name = config.find("name");
  if (name != nullptr && name->is_string()) options.name = name->string();
  return std::make_shared<PipelineLayer>(std::move(options));
}

// ---- MaxNumBoundingBoxes.

MaxNumBoundingBoxesLayer::MaxNumBoundingBoxesLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.max_number <= 0) {
    throw ValueError(caller(), ": max_number must be positive, received ", options_.max_number);
  }
}

// Cuts or fills the second axis.
Tensor MaxNumBoundingBoxesLayer::limited(const Tensor& x) const {
  const int64_t count = options_.max_number;
  if (x.rank() < 2) {
    throw ValueError(caller(), ": boxes must be [batch, boxes, 4] and labels [batch, boxes], ",
                     "received shape ", x.shape());
  }
  if (x.is_symbolic())
    return Tensor::symbolic({.shape = x.shape().with(1, count), .dtype = x.dtype()});
  if (x.dim(1) >= count) return ops::slice(x, 1, 0, count);
  keras_ops::PadWidth width(x.rank(), {0, 0});
  width[1].second = count - x.dim(1);
  return keras_ops::pad(x, width, "constant", static_cast<double>(options_.fill_value));
}

Tensors MaxNumBoundingBoxesLayer::transform_boxes(const Tensors& boxes) const {
  const auto& entries = boxes.entries();
  if (entries.size() != 2 || !entries.contains("boxes") || !entries.contains("labels")) {
    throw ValueError(caller(), ": bounding_boxes must have the keys boxes and labels, received ",
                     boxes.structure());
  }
  const Tensor box = boxes.at("boxes").tensor();
  if (box.rank() != 3 || box.dim(2) != 4) {
    throw ValueError(caller(), ": boxes must be [batch, boxes, 4], received shape ", box.shape());
  }
  return Tensors{{"boxes", limited(box)}, {"labels", limited(boxes.at("labels").tensor())}};
}

// Keras's configs have no fill_value.
Config MaxNumBoundingBoxesLayer::get_config() const {
  Config config = to_config(options_);
  if (options_.fill_value == -1) config.erase("fill_value");
  return config;
}

KEEL_REGISTER(Layer, PipelineLayer, .package = "keras", .call = "inputs, training, mask")
KEEL_REGISTER(Layer, MaxNumBoundingBoxesLayer, .package = "keras", .call = "data, training",
              .ignored_keys = "bounding_box_format=null")

}  // namespace keel
