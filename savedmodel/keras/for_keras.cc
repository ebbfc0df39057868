#include <keel/savedmodel/keras/for_keras.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>

#include <keel/layers/embedding/tables/feature_lookups.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/node_results.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/keras/dialect/keras_interactions.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>
#include <keel/savedmodel/keras/internal/keras_lookups.h>
#include <keel/savedmodel/keras/internal/model_weights.h>

namespace keel {
namespace {

class Rewriter {
 public:
  Rewriter(const FunctionalModel& model, const MinCount& min_count)
      : model_(model), min_count_(min_count) {}

  ModelHandle rewrite() {
    for (const auto& node : model_.nodes()) add(*node);
    for (const TensorLike& input : flatten(model_.inputs())) {
      // An input that no output depends on is not a node of the graph.
      if (results_.find(input) == nullptr) add(*input.values().producer());
    }
    return Functional({.inputs = inputs(),
                       .outputs = lookups_.replaced(model_.outputs()),
                       .name = model_.name(),
                       .trainable = model_.trainable()});
  }

 private:
  void add(const GraphNode& node) {
    if (const auto* input = dynamic_cast<const InputLayer*>(node.operation.get())) {
      return add_input(node, *input);
    }
    if (KerasLookups::replaces(*node.operation)) return lookups_.add(node);
    const auto* layer = dynamic_cast<const Layer*>(node.operation.get());
    if (layer != nullptr && has_keras_form(*layer)) {
      return results_.add(node,
                          Tensors(interactions_.rewrite(*layer, lookups_.replaced(node.inputs))));
    }
    const Layer* const unknown = layer == nullptr ? nullptr : unknown_to_keras(*layer);
    if (const auto* const inner = dynamic_cast<const FunctionalModel*>(layer);
        inner != nullptr && (unknown != nullptr || has_keras_form_inside(*inner))) {
      const ModelHandle made = rewritten(*inner);
      return results_.add(node,
                          made.shared()->replay(lookups_.replaced(node.inputs), node.options));
    }
    if (unknown != nullptr) {
      throw ValueError("save_model for Keras: ", unknown->class_name(), " '", unknown->name(),
                       unknown == layer ? "'" : absl::StrCat("' in '", layer->name(), "'"),
                       " has no equivalent layers in Keras; remove it, or save without for_keras");
    }
    results_.add(node, node.operation->replay(lookups_.replaced(node.inputs), node.options));
  }

  // Returns the rewritten form of a nested model, which all calls of the model share.
  ModelHandle rewritten(const FunctionalModel& inner) {
    const auto it = models_.find(&inner);
    if (it != models_.end()) return it->second;
    for (const TensorLike& input : flatten(inner.inputs())) {
      if (input.layout() == Layout::kDense) continue;
      throw ValueError(
          "save_model for Keras: '", inner.name(), "' in '", model_.name(),
          "' has ragged or sparse inputs; only the outermost model may have such inputs");
    }
    return models_.emplace(&inner, Rewriter(inner, min_count_).rewrite()).first->second;
  }

  // Replaces a dense input. Sparse inputs are replaced when their feature is found.
  void add_input(const GraphNode& node, const InputLayer& input) {
    const TensorSpec spec = input.spec();
    if (spec.layout == Layout::kDense) {
      results_.add(node, Tensors(KerasLookups::new_input(spec.shape, spec.dtype, input.name())));
    }
  }

  std::string unique(std::string name) {
    const auto taken = [&](const std::string& candidate) {
      const auto is_it = [&](const auto& layer) { return layer->name() == candidate; };
      return std::ranges::any_of(model_.layers(), is_it) ||
             std::ranges::find(names_, candidate) != names_.end();
    };
    std::string out = name;
    for (int i = 1; taken(out); ++i) out = absl::StrCat(name, "_", i);
    names_.push_back(out);
    return out;
  }

  // Returns the model's inputs, followed by the new ones.
  Tensors inputs() const {
    Tensors first = lookups_.replaced(model_.inputs());
    if (lookups_.presence().empty()) return first;
    if (first.is_dict()) {
      Tensors::Dict all = first.entries();
      for (const auto& [name, tensor] : lookups_.presence()) all.emplace(name + "_weights", tensor);
      return Tensors(std::move(all));
    }
    Tensors::Items all;
    if (first.is_leaf()) {
      all.push_back(first);
    } else {
      all = first.items();
    }
    for (const auto& [name, tensor] : lookups_.presence()) all.emplace_back(tensor);
    return Tensors::list(std::move(all));
  }

  const FunctionalModel& model_;
  const MinCount& min_count_;
  NodeResults results_;
  std::map<const FunctionalModel*, ModelHandle> models_;  // rewritten nested models
  std::vector<std::string> names_;                        // names of new layers
  KerasInteractions interactions_{[this](std::string name) { return unique(std::move(name)); }};
  KerasLookups lookups_{results_, min_count_,
                        [this](std::string name) { return unique(std::move(name)); }};
};

}  // namespace

// Custom classes are not checked, because the user can register them in Keras. DistributedEmbedding
// is treated like the other layers of large tables, although keras_rs has it: files for Keras hold
// tables as the weights of ordinary layers.
const Layer* unknown_to_keras(const Layer& layer) {
  if (layer_registry().traits(layer.class_name()).package == "keel" ||
      dynamic_cast<const FeatureLookups*>(&layer) != nullptr || !dynamic_tables_of(layer).empty()) {
    return &layer;
  }
  for (const auto& child : layer.sublayers()) {
    if (const Layer* const found = unknown_to_keras(*child)) return found;
  }
  return nullptr;
}

ModelHandle keras_model_of(const Model& model, const MinCount& min_count) {
  require_no_replica("save_model");
  require_built("save_model", model);
  const Layer* const unknown = unknown_to_keras(model);
  if (unknown == nullptr && !has_keras_form_inside(model)) {
    const auto self = std::dynamic_pointer_cast<const Model>(model.shared_from_this());
    return {kAdopt, std::const_pointer_cast<Model>(self)};
  }
  const auto* functional = dynamic_cast<const FunctionalModel*>(&model);
  if (functional == nullptr) {
    throw ValueError("save_model for Keras: ", unknown->class_name(), " '", unknown->name(),
                     "' has no layer in Keras, and only functional models can be rewritten; '",
                     model.name(), "' is a ", model.class_name());
  }
  return Rewriter(*functional, min_count).rewrite();
}

}  // namespace keel
