// FunctionalModel::get_config. Calls of layers are written as Keras 2 lists them, which Keras 3
// reads too: a call is the list of its tensors [layer, call, output, {}]. A call whose inputs are
// neither a tensor nor a list of several, or hold a constant, is written as Keras 3 does:
// {"args": [inputs], "kwargs"}.
#include <algorithm>
#include <unordered_map>

#include "layers/functional.h"
#include "layers/registry.h"

namespace keel {
namespace {

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
                              ", and files hold layers only; put it into a layer");
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
    return Config::dict({{"name", layer.name()},
                         {"class_name", out["class_name"]},
                         {"config", out["config"]},
                         {"inbound_nodes", std::move(inbound)}});
  }

  Config call(const GraphNode& node) const {
    const Tensors& inputs = node.inputs;
    Config keywords = Config::dict();
    if (node.options.training) keywords.set("training", *node.options.training);
    const std::vector<TensorLike> leaves = flatten(inputs);
    const bool all_symbolic = std::ranges::all_of(leaves, &TensorLike::is_symbolic);
    const Config mask = mask_of(leaves);
    if (!mask.is_null()) keywords.set("mask", mask);
    if (inputs.is_leaf() && all_symbolic) {
      return Config::list({tensor(inputs.leaf(), keywords)});
    }
    const bool flat = inputs.kind() == NestKind::kList && inputs.items().size() > 1 &&
                      std::ranges::all_of(inputs.items(), &Tensors::is_leaf);
    if (!flat || !all_symbolic) {
      return Config::dict(
          {{"args", Config::list({structure(inputs)})}, {"kwargs", std::move(keywords)}});
    }
    Config::List out;
    for (const Tensors& input : inputs.items()) out.push_back(tensor(input.leaf(), keywords));
    return out;
  }

  // The masks that the caller gave inputs; null if there are none. Those that layers make are no
  // part of files: layers make them again.
  Config mask_of(const std::vector<TensorLike>& leaves) const {
    Config::List masks;
    for (const TensorLike& leaf : leaves) {
      const Tensor mask = leaf.is_symbolic() ? leaf.values().mask() : Tensor();
      if (mask && mask.is_symbolic() && mask.producer() != nullptr) {
        masks.push_back(triple(mask, 0));
      } else {
        masks.emplace_back();
      }
    }
    const bool none = std::ranges::all_of(masks, &Config::is_null);
    if (none) return {};
    return masks.size() == 1 ? masks[0] : Config(std::move(masks));
  }

  // [layer, call, output], with Keras 2's keyword arguments.
  Config tensor(const TensorLike& t, const Config& keywords) const {
    Config out = triple(t, 0);
    out.push_back(keywords);
    return out;
  }

  Config triple(const TensorLike& t, int64_t first_call) const {
    const GraphNode& node = *t.values().producer();
    const auto it = numbers_.find(&node);
    // An input that no output needs is no node of the model; it is called once.
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
      throw NotImplementedError("Functional ", model_.name(), ": a layer is called with a constant",
                                " that is ragged, sparse or of strings, which files cannot hold");
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

  // The model's inputs or outputs. Keras wraps a single tensor in a list.
  Config ends(const Tensors& tensors) const {
    Config out = end(tensors);
    return tensors.is_leaf() ? Config::list({std::move(out)}) : out;
  }

  // Keras 3 counts the calls of a nested model from 1 here, and only here.
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
  std::unordered_map<const GraphNode*, int> numbers_;  // of a call among those of its layer
};

}  // namespace

Config FunctionalModel::get_config() const { return Writer(*this).write(); }

}  // namespace keel
