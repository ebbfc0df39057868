#include <keel/layers/functional/clone_model.h>

#include <map>

#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/node_results.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

class ModelCloner {
 public:
  explicit ModelCloner(const CloneModelOptions& options) : options_(options) {}

  ModelHandle clone(const Model& model) {
    if (const auto* graph = dynamic_cast<const FunctionalModel*>(&model)) {
      return functional(*graph, options_.input_tensors);
    }
    if (const auto* sequence = dynamic_cast<const SequentialModel*>(&model)) {
      if (options_.call_function) {
        throw ValueError("clone_model: a Sequential such as '", model.name(),
                         "' only lists its layers; use call_function with Functional models");
      }
      return sequential(*sequence, options_.input_tensors);
    }
    const bool plain = !options_.clone_function && !options_.call_function &&
                       flatten(options_.input_tensors).empty();
    if (!plain) {
      throw ValueError("clone_model: ", model.class_name(), " '", model.name(),
                       "' is neither Functional nor Sequential; clone it without options");
    }
    return as_model(layers::deserialize(layers::serialize(model)));
  }

 private:
  static ModelHandle as_model(const LayerHandle<Layer>& layer) {
    return {kAdopt, std::dynamic_pointer_cast<Model>(layer.shared())};
  }

  // Returns the replacement of a layer, which is made once.
  LayerHandle<Layer> replacement(const LayerHandle<Layer>& layer) {
    const auto found = replacements_.find(&*layer);
    if (found != replacements_.end()) return found->second;
    return replacements_.emplace(&*layer, made(layer)).first->second;
  }

  LayerHandle<Layer> made(const LayerHandle<Layer>& layer) {
    if (options_.recursive) {
      if (const auto* graph = dynamic_cast<const FunctionalModel*>(&*layer)) {
        return functional(*graph, {});
      }
      if (const auto* sequence = dynamic_cast<const SequentialModel*>(&*layer)) {
        return sequential(*sequence, {});
      }
    }
    if (options_.clone_function) return options_.clone_function(layer);
    return layers::deserialize(layers::serialize(*layer));
  }

  static TensorLike new_input(const Layer& layer) {
    return LayerHandle<InputLayer>(
               from_config<InputLayerOptions>(layer.get_config(), InputLayer::kClassName))
        ->make_output();
  }

  Functional functional(const FunctionalModel& model, const Tensors& input_tensors) {
    NodeResults results;
    Tensors inputs = input_tensors;
    if (flatten(inputs).empty()) {
      inputs = map_structure(model.inputs(), [](const TensorLike& t) -> TensorLike {
        return new_input(dynamic_cast<const Layer&>(*t.values().producer()->operation));
      });
    }
    assert_same_structure(model.inputs(), inputs);
    const std::vector<TensorLike> old_inputs = flatten(model.inputs()), given = flatten(inputs);
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].is_symbolic()) {
        throw ValueError("clone_model: input_tensors must be symbolic; make them by layers::input");
      }
      results.add(old_inputs[i], given[i]);
    }
    const auto replaced = [&](const Tensors& tensors) {
      return results.replaced(tensors, [](const TensorLike&) -> std::string {
        return "clone_model: a tensor of the graph is not the result of one of its layers";
      });
    };
    for (const auto& node : model.nodes()) {
      if (dynamic_cast<const InputLayer*>(node->operation.get()) != nullptr) continue;
      results.add(*node, run(*node, replaced(node->inputs)));
    }
    return Functional({.inputs = inputs,
                       .outputs = replaced(model.outputs()),
                       .name = model.name(),
                       .trainable = model.trainable(),
                       .dtype = model.dtype_policy()});
  }

  // Runs the replacement of a node's layer, or the node's op.
  Tensors run(const GraphNode& node, const Tensors& inputs) {
    const auto layer = std::dynamic_pointer_cast<Layer>(node.operation);
    if (layer == nullptr) return node.operation->replay(inputs, node.options);
    const LayerHandle<Layer> by = replacement({kAdopt, layer});
    if (options_.call_function) return options_.call_function(by, inputs, node.options);
    return by->replay(inputs, node.options);
  }

  Sequential sequential(const SequentialModel& model, const Tensors& input_tensors) {
    SequentialOptions options = {
        .name = model.name(), .trainable = model.trainable(), .dtype = model.dtype_policy()};
    const std::vector<TensorLike> given = flatten(input_tensors);
    if (given.size() > 1) {
      throw ValueError("clone_model: Sequential '", model.name(), "' takes one input, received ",
                       given.size(), " input_tensors");
    }
    std::optional<TensorSpec> spec = model.input_spec();
    if (!given.empty()) spec = given[0].spec();
    if (spec) {
      options.layers.push_back(LayerHandle<InputLayer>({.batch_shape = spec->shape,
                                                        .dtype = spec->dtype,
                                                        .ragged = spec->layout == Layout::kRagged,
                                                        .sparse = spec->layout == Layout::kSparse,
                                                        .name = model.input_name()}));
    }
    for (const LayerHandle<Layer>& layer : model.layers()) {
      options.layers.push_back(replacement(layer));
    }
    return Sequential(std::move(options));
  }

  const CloneModelOptions& options_;
  std::map<const Layer*, LayerHandle<Layer>> replacements_;
};

}  // namespace

ModelHandle clone_model(const Model& model, const CloneModelOptions& options) {
  return ModelCloner(options).clone(model);
}

}  // namespace keel
