#include <keel/layers/functional/sequential.h>

#include <algorithm>

#include <keel/layers/functional/functional.h>
#include <keel/layers/internal/shared_layers.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

SequentialModel::SequentialModel(Options options) : Model(kClassName, options) {
  for (const auto& layer : options.layers) add(layer);
}

void SequentialModel::add(const LayerHandle<Layer>& layer) {
  if (const auto* input = dynamic_cast<const InputLayer*>(layer.shared().get())) {
    if (!sublayers().empty()) {
      throw ValueError("Sequential ", name(), ": an InputLayer must be the first layer");
    }
    input_spec_ = input->spec();
    input_name_ = input->name();
    return;
  }
  const auto taken = [&](const auto& other) { return other->name() == layer->name(); };
  if (std::ranges::any_of(sublayers(), taken)) {
    throw ValueError("Sequential ", name(), ": two layers are named '", layer->name(),
                     "'; rename one of them");
  }
  // With a known input spec, each layer is built when it is added, so that summary() shows its
  // shapes. Specs are propagated layer by layer because the constructor calls add(), before the
  // model can be called.
  if (input_spec_) {
    if (!output_specs_) {
      Specs specs(*input_spec_);
      for (const auto& each : sublayers()) specs = each->compute_output_spec(specs);
      output_specs_ = std::move(specs);
    }
    Specs specs = layer->compute_output_spec(*output_specs_);
    track(layer);
    output_specs_ = std::move(specs);
    return;
  }
  track(layer);
}

std::vector<LayerHandle<Layer>> SequentialModel::layers() const { return sublayers(); }

void SequentialModel::build_weights(const Specs& inputs) {
  if (!input_spec_ && inputs.is_leaf()) {
    input_spec_ = inputs.leaf();
    // Forget the size of the first batch, since other batches may have other sizes.
    if (input_spec_->shape.rank() > 0) input_spec_->shape = input_spec_->shape.with(0, kUnknown);
  }
}

Tensors SequentialModel::call(const Tensors& inputs, const CallContext&) {
  Tensors x = inputs;
  for (const auto& layer : sublayers()) x = layer(x);
  return x;
}

bool SequentialModel::supports_prefetch() const {
  return !sublayers().empty() && sublayers().front()->supports_prefetch();
}

void SequentialModel::prefetch(const Tensors& inputs) {
  if (supports_prefetch()) sublayers().front()->prefetch(inputs);
}

Config SequentialModel::get_config() const {
  const SharedLayerWriter shared;
  Config::List layers;
  if (input_spec_) {
    const InputLayer input({.batch_shape = input_spec_->shape,
                            .dtype = input_spec_->dtype,
                            .ragged = input_spec_->layout == Layout::kRagged,
                            .sparse = input_spec_->layout == Layout::kSparse,
                            .name = input_name()});
    layers.push_back(layers::serialize(input));
  }
  for (const auto& layer : sublayers()) layers.push_back(layers::serialize(*layer));
  return shared.finish(Config::dict(
      {{"name", name()}, {"trainable", trainable()}, {"layers", Config(std::move(layers))}}));
}

namespace {

// Returns the input options that Keras 2 may store in the config of the first layer.
std::optional<InputLayerOptions> input_in(const Config& first_layer) {
  const Config& config = first_layer["config"];
  const Config* const shape = config.is_dict() ? config.find("batch_input_shape") : nullptr;
  if (first_layer["class_name"].string() == "InputLayer" || shape == nullptr || shape->is_null()) {
    return std::nullopt;
  }
  InputLayerOptions options;
  decode(*shape, options.batch_shape);
  // Keras 2 names the implicit input "<layer>_input"; features are passed under this name.
  if (const Config* const name = config.find("name"); name != nullptr && name->is_string()) {
    options.name = name->string() + "_input";
  }
  return options;
}

}  // namespace

LayerHandle<SequentialModel> SequentialModel::from_config(const Config& config) {
  const SharedLayerReader shared;
  SequentialOptions options;
  const auto find = [&](const char* key) {
    const Config* const found = config.is_dict() ? config.find(key) : nullptr;
    return found == nullptr || found->is_null() ? nullptr : found;
  };
  if (const Config* name = find("name")) options.name = name->string();
  // Before Keras 2.2.3 the config was just the list of layers.
  const Config::List& entries = config.is_list() ? config.items() : config["layers"].items();
  if (!entries.empty()) {
    if (std::optional<InputLayerOptions> input = input_in(entries[0])) {
      options.layers.push_back(LayerHandle<InputLayer>(std::move(*input)));
    }
  }
  for (const Config& layer : entries) options.layers.push_back(layers::deserialize(layer));
  Sequential model(std::move(options));
  if (const Config* trainable = find("trainable")) {
    if (!trainable->boolean()) model->set_trainable(false);
  }
  return model;
}

std::optional<ModelInputs> SequentialModel::symbolic_inputs() const {
  if (!input_spec_) return {};
  return ModelInputs{.tensors = make_symbolic(*input_spec_, nullptr, 0), .names = {input_name()}};
}

std::vector<std::string> SequentialModel::output_layer_names() const {
  const auto all = layers();
  if (all.empty()) return {};
  return {all.back()->name()};
}

std::optional<PlanValues> SequentialModel::plan(Planner& planner, const PlanValues& inputs) const {
  PlanValues x = inputs;
  for (const auto& layer : sublayers()) x = planner.call(layer.shared(), x);
  return x;
}

namespace internal {

void register_SequentialModel(Registry<Layer>& registry);
void register_SequentialModel(Registry<Layer>& registry) {
  const auto make = [](const Config& config) {
    return SequentialModel::from_config(config).shared();
  };
  registry.add(SequentialModel::kClassName, make,
               {.package = "keras", .call = "inputs, training, mask"});
}

}  // namespace internal
}  // namespace keel
