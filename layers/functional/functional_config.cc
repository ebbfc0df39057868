// FunctionalModel::get_config.
//
// A call with one argument that is a tensor, or a list of several tensors, is written in the form
// of Keras 2, which Keras 3 reads too: a list of [layer, call, output, {}]. All other calls are
// written in the form of Keras 3, {"args": [...], "kwargs": {...}}, because Keras 3 does not
// convert Keras 2 keyword arguments to tensors.
#include <algorithm>
#include <unordered_map>

#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/keras_calls.h>
#include <keel/layers/internal/shared_layers.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Builds the config of a functional model.
class Writer {
 public:
  explicit Writer(const FunctionalModel& model) : model_(model) {
    std::vector<std::shared_ptr<const GraphNode>> nodes = model.nodes();
    std::ranges::sort(nodes, {}, [](const auto& node) { return node->sequence; });
    for (const auto& node : nodes) {
      std::vector<const GraphNode*>& calls = calls_[node->operation.get()];
      numbers_[node.get()] = static_cast<int>(calls.size());
      calls.push_back(node.get());
    }
  }

  Config write() const {
    Config::List layers;
    for (const auto& node : model_.nodes()) layer_of(*node);
    for (const auto& layer : model_.layers()) layers.push_back(entry(*layer));
    return Config::dict({{"name", model_.name()},
                         {"trainable", model_.trainable()},
                         {"layers", std::move(layers)},
                         {"input_layers", ends(model_.inputs())},
                         {"output_layers", ends(model_.outputs())}});
  }

 private:
  const Layer& layer_of(const GraphNode& node) const {
    if (const auto* layer = dynamic_cast<const Layer*>(node.operation.get())) return *layer;
    throw NotImplementedError("Functional ", model_.name(), ": the graph has the op ",
                              node.operation->class_name(),
                              ", which cannot be saved; wrap the op in a layer");
  }

  Config entry(const Layer& layer) const {
    Config out = layers::serialize(layer);
    Config::List inbound;
    if (const auto it = calls_.find(&layer); it != calls_.end()) {
      for (const GraphNode* node : it->second) {
        if (!node->inputs.is_sequence() || !node->inputs.items().empty()) {
          inbound.push_back(call(*node));
        }
      }
    }
    Config made = Config::dict({{"name", layer.name()},
                                {"class_name", out["class_name"]},
                                {"config", out["config"]},
                                {"inbound_nodes", std::move(inbound)}});
    if (const Config* const number = out.find(kSharedObjectId)) made.set(kSharedObjectId, *number);
    return made;
  }

  Config call(const GraphNode& node) const {
    const Layer& layer = layer_of(node);
    const KerasCall made = keras_call(layer.class_name(), node.inputs);
    Config keywords = Config::dict();
    for (const std::string& flag : made.flags) keywords.set(flag, true);
    if (node.options.training && takes_training(layer.class_name())) {
      keywords.set("training", *node.options.training);
    }
    const bool by_name = set_masks(layer.class_name(), made, keywords);
    const Tensors& inputs = made.inputs[0].value;
    if (made.inputs.size() == 1 && !by_name && is_listed(inputs)) {
      return listed(inputs, keywords);
    }
    Config::List arguments;
    for (const KerasCall::Input& input : made.inputs) {
      if (input.by_keyword) {
        keywords.set(input.name, structure(input.value));
      } else {
        arguments.push_back(structure(input.value));
      }
    }
    return Config::dict({{"args", std::move(arguments)}, {"kwargs", std::move(keywords)}});
  }

  // Returns true if Keras 2 has a form for these inputs: one tensor or a list of several.
  static bool is_listed(const Tensors& inputs) {
    const bool flat = inputs.kind() == NestKind::kList && inputs.items().size() > 1 &&
                      std::ranges::all_of(inputs.items(), &Tensors::is_leaf);
    return (flat || inputs.is_leaf()) &&
           std::ranges::all_of(flatten(inputs), &TensorLike::is_symbolic);
  }

  Config listed(const Tensors& inputs, const Config& keywords) const {
    Config::List out;
    for (const TensorLike& input : flatten(inputs)) out.push_back(tensor(input, keywords));
    return out;
  }

  // Adds the masks that the caller passed explicitly, and returns whether there are any. Masks
  // computed by layers are not stored, because the layers compute them again.
  bool set_masks(const std::string& class_name, const KerasCall& made, Config& keywords) const {
    bool any = false;
    for (const CallParameter& parameter : call_signature(class_name).parameters) {
      if (parameter.kind != CallParameter::Kind::kMask) continue;
      for (const KerasCall::Input& input : made.inputs) {
        if (input.name != parameter.masked) continue;
        const Config mask = mask_of(input.value);
        if (mask.is_null()) continue;
        keywords.set(parameter.name, mask);
        any = true;
      }
    }
    return any;
  }

  // Returns null if no leaf of the inputs has an explicit mask.
  Config mask_of(const Tensors& inputs) const {
    Config::List masks;
    for (const TensorLike& leaf : flatten(inputs)) {
      const Tensor mask = leaf.is_symbolic() ? leaf.values().mask() : Tensor();
      const bool given = mask && (!mask.is_symbolic() || mask.producer() != nullptr);
      masks.push_back(given ? structure(mask) : Config());
    }
    if (std::ranges::all_of(masks, &Config::is_null)) return {};
    return inputs.is_leaf() ? masks[0] : Config(std::move(masks));
  }

  // Returns [layer, call, output, keywords], the form of Keras 2.
  Config tensor(const TensorLike& t, const Config& keywords) const {
    Config out = triple(t, 0);
    out.push_back(keywords);
    return out;
  }

  Config triple(const TensorLike& t, int64_t first_call) const {
    const GraphNode& node = *t.values().producer();
    const auto it = numbers_.find(&node);
    // An input that no output depends on is not a node of the model; it is called once.
    const int64_t number = it == numbers_.end() ? 0 : it->second;
    return Config::list(
        {layer_of(node).name(), first_call + number, int64_t{t.values().producer_output()}});
  }

  Config structure(const Tensors& inputs) const {
    if (inputs.is_leaf() && !inputs.leaf().is_symbolic()) return constant(inputs.leaf());
    if (inputs.is_leaf()) {
      const TensorSpec spec = inputs.leaf().spec();
      return Config::dict(
          {{"class_name", "__keras_tensor__"},
           {"config", Config::dict({{"shape", encode(spec.shape)},
                                    {"dtype", encode(spec.dtype)},
                                    {"keras_history", triple(inputs.leaf(), 0)}})}});
    }
    if (inputs.is_dict()) {
      Config out = Config::dict();
      for (const auto& [key, child] : inputs.entries()) out.set(key, structure(child));
      return out;
    }
    Config::List items;
    for (const Tensors& child : inputs.items()) items.push_back(structure(child));
    if (inputs.kind() == NestKind::kList) return items;
    return Config::dict({{"class_name", "__tuple__"}, {"items", std::move(items)}});
  }

  Config constant(const TensorLike& t) const {
    if (t.layout() != Layout::kDense || t.tensor().dtype() == DType::kString) {
      throw NotImplementedError(
          "Functional ", model_.name(), ": a layer is called with a constant",
          " that is ragged, sparse or of strings, which files do not support; pass it as an input");
    }
    const std::vector<double> values = t.tensor().cast(DType::kFloat64).to_vector<double>();
    size_t next = 0;
    return Config::dict(
        {{"class_name", "__numpy__"},
         {"config", Config::dict({{"value", array(t.tensor().shape(), 0, values, next)},
                                  {"dtype", encode(t.tensor().dtype())}})}});
  }

  static Config array(const Shape& shape, int axis, const std::vector<double>& values,
                      size_t& next) {
    if (axis == shape.rank()) return values[next++];
    Config::List out;
    for (int64_t i = 0; i < shape[axis]; ++i) out.push_back(array(shape, axis + 1, values, next));
    return out;
  }

  // Returns the inputs or outputs of the model. Keras wraps a single tensor in a list.
  Config ends(const Tensors& tensors) const {
    Config out = end(tensors);
    return tensors.is_leaf() ? Config::list({std::move(out)}) : out;
  }

  // Keras 3 counts the calls of a nested functional model from 1 in this place only.
  Config end(const Tensors& tensors) const {
    if (tensors.is_leaf()) {
      const Operation* operation = tensors.leaf().values().producer()->operation.get();
      const bool nested = dynamic_cast<const FunctionalModel*>(operation) != nullptr;
      return triple(tensors.leaf(), nested ? 1 : 0);
    }
    if (tensors.is_dict()) {
      Config out = Config::dict();
      for (const auto& [key, child] : tensors.entries()) out.set(key, end(child));
      return out;
    }
    Config::List out;
    for (const Tensors& child : tensors.items()) out.push_back(end(child));
    return out;
  }

  const FunctionalModel& model_;
  std::unordered_map<const Operation*, std::vector<const GraphNode*>> calls_;
  // Index of a call among the calls of its layer.
  std::unordered_map<const GraphNode*, int> numbers_;
};

}  // namespace

Config FunctionalModel::get_config() const {
  const SharedLayerWriter shared;
  return shared.finish(Writer(*this).write());
}

}  // namespace keel
