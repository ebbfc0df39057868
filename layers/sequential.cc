#include "layers/sequential.h"

#include <algorithm>

#include "layers/input_layer.h"
#include "layers/registry.h"

namespace keel {

SequentialModel::SequentialModel(Options options) : Model(kClassName, options) {
  for (const auto& layer : options.layers) add(layer);
}

void SequentialModel::add(const LayerHandle<Layer>& layer) {
  if (const auto* input = dynamic_cast<const InputLayer*>(layer.shared().get())) {
    if (!sublayers().empty()) {
      throw ValueError("Sequential ", name(), ": an InputLayer can only be the first layer");
    }
    input_spec_ = input->spec();
    return;
  }
  const auto taken = [&](const auto& other) { return other->name() == layer->name(); };
  if (std::ranges::any_of(sublayers(), taken)) {
    throw ValueError("Sequential ", name(), ": two layers are named '", layer->name(), "'");
  }
  // With a known input each layer is built as it comes, so that summary() shows its shapes. One
  // by one: the constructor comes here, and a model that is not made yet cannot be called.
  if (input_spec_) {
    Specs specs(*input_spec_);
    for (const auto& each : sublayers()) specs = each->compute_output_spec(specs);
    layer->compute_output_spec(specs);
  }
  track(layer);
}

std::vector<LayerHandle<Layer>> SequentialModel::layers() const { return sublayers(); }

void SequentialModel::build_weights(const Specs& inputs) {
  if (!input_spec_ && inputs.is_leaf()) {
    input_spec_ = inputs.leaf();
    // The first batch's size says nothing of the next one's.
    if (input_spec_->shape.rank() > 0) input_spec_->shape = input_spec_->shape.with(0, kUnknown);
  }
}

Tensors SequentialModel::call(const Tensors& inputs, const CallContext&) {
  Tensors x = inputs;
  for (const auto& layer : sublayers()) x = layer(x);
  return x;
}

Config SequentialModel::get_config() const {
  Config::List layers;
  if (input_spec_) {
    const InputLayer input({.batch_shape = input_spec_->shape,
                            .dtype = input_spec_->dtype,
                            .ragged = input_spec_->layout == Layout::kRagged,
                            .sparse = input_spec_->layout == Layout::kSparse,
                            .name = "input_" + name()});
    layers.push_back(layers::serialize(input));
  }
  for (const auto& layer : sublayers()) layers.push_back(layers::serialize(*layer));
  return Config::dict(
      {{"name", name()}, {"trainable", trainable()}, {"layers", Config(std::move(layers))}});
}

LayerHandle<SequentialModel> SequentialModel::from_config(const Config& config) {
  SequentialOptions options;
  if (const Config* name = config.find("name")) options.name = name->string();
  for (const Config& layer : config["layers"].items()) {
    options.layers.push_back(layers::deserialize(layer));
  }
  Sequential model(std::move(options));
  if (const Config* trainable = config.find("trainable")) {
    if (!trainable->boolean()) model->set_trainable(false);
  }
  return model;
}

}  // namespace keel
