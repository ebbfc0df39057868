#include <algorithm>
#include <array>

#include <keel/autodiff/ops.h>
#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/registry.h>
#include <keel/layers/wrappers/wrappers.h>

namespace keel {
namespace {

LayerHandle<RecurrentLayer> as_recurrent(const std::optional<LayerHandle<Layer>>& layer,
                                         const char* option) {
  if (!layer) throw ValueError("Bidirectional: ", option, " is not set; pass a recurrent layer");
  auto recurrent = std::dynamic_pointer_cast<RecurrentLayer>(layer->shared());
  if (recurrent == nullptr) {
    throw ValueError("Bidirectional: ", option, " must be a recurrent layer, received ",
                     (*layer)->class_name(), " ", (*layer)->name());
  }
  return {kAdopt, std::move(recurrent)};
}

// Creates a layer with the same config, named "<prefix><name>".
LayerHandle<RecurrentLayer> remade(const BidirectionalOptions& options, const std::string& prefix,
                                   bool backwards) {
  const LayerHandle<RecurrentLayer> layer = as_recurrent(options.layer, "layer");
  Config config = layers::serialize(*layer);
  Config inner = config["config"];
  const std::string& name = layer->name();
  inner.set("name", name.starts_with(prefix) ? name : prefix + name);
  if (backwards) inner.set("go_backwards", true);
  config.set("config", std::move(inner));
  return as_recurrent(layers::deserialize(config), "layer");
}

LayerHandle<RecurrentLayer> backward_of(const BidirectionalOptions& options) {
  if (options.backward_layer) return as_recurrent(options.backward_layer, "backward_layer");
  return remade(options, "backward_", true);
}

Tensor reversed_steps(const Tensor& x) {
  if (x.is_symbolic()) return x;
  std::vector<Tensor> steps = ops::split(x, x.dim(1), 1);
  std::ranges::reverse(steps);
  return ops::concat(steps, 1);
}

}  // namespace

BidirectionalLayer::BidirectionalLayer(Options options)
    : Layer(kClassName, options),
      merge_mode_(options.merge_mode),
      forward_(track(remade(options, "forward_", false))),
      backward_(track(backward_of(options))) {
  constexpr std::array kModes = {"concat", "sum", "mul", "ave"};
  if (merge_mode_ && std::ranges::find(kModes, *merge_mode_) == kModes.end()) {
    throw ValueError("Bidirectional ", name(),
                     ": merge_mode must be concat, sum, mul, ave or unset, received '",
                     *merge_mode_, "'");
  }
  check_layers();
  for (const auto& layer : {forward_, backward_}) {
    layer->set_zero_output_for_mask(layer->loop().return_sequences);
  }
}

void BidirectionalLayer::check_layers() const {
  const RecurrentLayer::Loop &forward = forward_->loop(), &backward = backward_->loop();
  if (forward.go_backwards == backward.go_backwards) {
    throw ValueError("Bidirectional ", name(),
                     ": layer and backward_layer must differ in go_backwards, received ",
                     forward.go_backwards ? "true" : "false", " for both");
  }
  const auto check_same = [&](const char* option, bool a, bool b) {
    if (a == b) return;
    throw ValueError("Bidirectional ", name(), ": layer and backward_layer must have the same ",
                     option, ", received ", a ? "true" : "false", " and ", b ? "true" : "false");
  };
  check_same("stateful", forward.stateful, backward.stateful);
  check_same("return_sequences", forward.return_sequences, backward.return_sequences);
  check_same("return_state", forward.return_state, backward.return_state);
}

Tensors BidirectionalLayer::operator()(const Tensors& sequences, const CallOptions& options) {
  const std::vector<Tensor>& states = options.initial_state;
  if (states.empty()) return Layer::operator()(sequences, {.training = options.training});
  if (!built()) build(specs_of(sequences));  // built cells know the structure of their states
  const auto half = states.begin() + static_cast<std::ptrdiff_t>(states.size() / 2);
  Tensors::Items items = {sequences};
  for (Tensors& state : forward_->cell()->packed({states.begin(), half})) {
    items.push_back(std::move(state));
  }
  for (Tensors& state : backward_->cell()->packed({half, states.end()})) {
    items.push_back(std::move(state));
  }
  return Layer::operator()(Tensors::list(std::move(items)), {.training = options.training});
}

Tensor BidirectionalLayer::operator()(const Tensor& sequences, const CallOptions& options) {
  return (*this)(Tensors(sequences), options).tensor();
}

Tensors BidirectionalLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

void BidirectionalLayer::reset_states() {
  forward_->reset_states();
  backward_->reset_states();
}

void BidirectionalLayer::build_weights(const Specs& inputs) {
  const Specs sequences = inputs.is_leaf() ? inputs : inputs[0];
  for (const auto& layer : {forward_, backward_}) {
    layer->build(sequences);
    prepend_to_paths(name(), *layer);
  }
}

std::vector<Tensor> BidirectionalLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  if (!forward_->loop().return_sequences) return {};
  const TensorLike first = flatten(inputs).at(0);
  const Tensor mask = first.tensor().mask();
  return merge_mode_ ? std::vector{mask} : std::vector{mask, mask};
}

std::vector<Tensor> BidirectionalLayer::merged(const Tensor& forward,
                                               const Tensor& backward) const {
  if (!merge_mode_) return {forward, backward};
  if (*merge_mode_ == "concat") return {ops::concat({forward, backward})};
  if (*merge_mode_ == "mul") return {forward * backward};
  const Tensor sum = forward + backward;
  return {*merge_mode_ == "ave" ? sum * 0.5 : sum};
}

Tensors BidirectionalLayer::call(const Tensors& inputs, const CallContext&) {
  const Tensor x = inputs.is_leaf() ? inputs.tensor() : inputs[0].tensor();
  std::vector<Tensor> states;
  const std::vector<TensorLike> all = flatten(inputs);
  for (size_t i = 1; i < all.size(); ++i) states.push_back(all[i].tensor());
  if (states.size() % 2 != 0) {
    throw ValueError(
        "Bidirectional ", name(),
        ": initial_state must have an even number of tensors, half for each layer, received ",
        states.size());
  }
  const auto half = states.begin() + static_cast<std::ptrdiff_t>(states.size() / 2);
  const Tensors forward = forward_(Tensors(x), {.initial_state = {states.begin(), half}});
  const Tensors backward = backward_(Tensors(x), {.initial_state = {half, states.end()}});
  const RecurrentLayer::Loop& loop = forward_->loop();
  const auto output_of = [&](const Tensors& result) {
    return loop.return_state ? result[0].tensor() : result.tensor();
  };
  const Tensor last = output_of(backward);
  const std::vector<Tensor> outputs =
      merged(output_of(forward), loop.return_sequences ? reversed_steps(last) : last);
  Tensors::Items items(outputs.begin(), outputs.end());
  if (loop.return_state) {
    for (const Tensors* result : {&forward, &backward}) {
      items.insert(items.end(), result->items().begin() + 1, result->items().end());
    }
  }
  return items.size() == 1 ? items[0] : Tensors::tuple(std::move(items));
}

Config BidirectionalLayer::get_config() const {
  return Config::dict({{"name", name()},
                       {"trainable", trainable()},
                       {"dtype", encode(dtype_policy())},
                       {"merge_mode", encode(merge_mode_)},
                       {"layer", layers::serialize(*forward_)},
                       {"backward_layer", layers::serialize(*backward_)}});
}

namespace {

// The options that are stored unchanged in the config.
struct PlainOptions {
  std::optional<std::string> merge_mode = "concat";
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("merge_mode", self.merge_mode);
  }
};

std::optional<LayerHandle<Layer>> taken_layer(Config& config, const char* key) {
  const Config* const found = config.find(key);
  std::optional<LayerHandle<Layer>> out;
  if (found != nullptr && !found->is_null()) out = layers::deserialize(*found);
  if (found != nullptr) config.erase(key);
  return out;
}

}  // namespace

std::shared_ptr<Layer> BidirectionalLayer::from_config(const Config& config) {
  Config rest = config;
  Options options = {.layer = taken_layer(rest, "layer"),
                     .backward_layer = taken_layer(rest, "backward_layer")};
  PlainOptions plain = keel::from_config<PlainOptions>(rest, kClassName);
  options.merge_mode = std::move(plain.merge_mode);
  options.name = std::move(plain.name);
  options.trainable = plain.trainable;
  options.dtype = plain.dtype;
  return std::make_shared<BidirectionalLayer>(std::move(options));
}

KEEL_REGISTER(Layer, BidirectionalLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training", .ignored_keys = "weights=null")

}  // namespace keel
