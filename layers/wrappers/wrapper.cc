#include <keel/layers/wrappers/wrapper.h>

#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/registry.h>

namespace keel {

LayerHandle<Layer> WrapperLayer::required(const std::string& class_name,
                                          const std::optional<LayerHandle<Layer>>& layer) {
  if (!layer) throw ValueError(class_name, ": layer is not set; pass a layer");
  return *layer;
}

std::optional<LayerHandle<Layer>> WrapperLayer::taken_layer(Config& config) {
  std::optional<LayerHandle<Layer>> out;
  const Config* const found = config.find("layer");
  if (found != nullptr && !found->is_null()) out = layers::deserialize(*found);
  config.erase("layer");
  return out;
}

void WrapperLayer::build_layer(const Specs& inputs) {
  layer_->build(inputs);
  prepend_to_paths(name(), *layer_);
}

Tensors WrapperLayer::call(const Tensors& inputs, const CallContext&) { return layer_(inputs); }

Config WrapperLayer::get_config() const {
  return Config::dict({{"name", name()},
                       {"trainable", trainable()},
                       {"dtype", encode(dtype_policy())},
                       {"layer", layers::serialize(*layer_)}});
}

std::shared_ptr<Layer> WrapperLayer::from_config(const Config& config) {
  return make_wrapper<WrapperLayer>(config);
}

KEEL_REGISTER(Layer, WrapperLayer, .package = "keras")

}  // namespace keel
