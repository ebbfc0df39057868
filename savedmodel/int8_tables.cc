#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>

#include <keel/autodiff/tape.h>
#include <keel/framework/internal/quantizers.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/node_results.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/keras/for_keras.h>
#include <keel/savedmodel/keras/internal/model_weights.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

constexpr const char* kCaller = "save_model with int8 tables";

bool has_float_table(const Layer& layer) {
  const auto* const embedding = dynamic_cast<const EmbeddingLayer*>(&layer);
  if (embedding != nullptr && !embedding->embeddings_scale()) return true;
  return std::ranges::any_of(layer.sublayers(),
                             [](const auto& child) { return has_float_table(*child); });
}

bool is_graph(const Layer& layer) {
  return dynamic_cast<const FunctionalModel*>(&layer) != nullptr ||
         dynamic_cast<const SequentialModel*>(&layer) != nullptr;
}

LayerHandle<Layer> quantized(const EmbeddingLayer& layer) {
  if (!layer.dynamic_tables().empty()) {
    throw ValueError(kCaller, ": Embedding '", layer.name(),
                     "' has dynamic ids and does not support int8 tables");
  }
  const NoGradient pause;
  const QuantizedTable table = abs_max_quantize(
      layer.embeddings().read(), absl::StrCat(kCaller, ": Embedding '", layer.name(), "'"));
  Config config = layer.get_config();
  config.set("dtype", encode(layer.dtype_policy().with_int8_weights()));
  const LayerHandle<Layer> out = layers::deserialize(
      Config::dict({{"class_name", EmbeddingLayer::kClassName}, {"config", std::move(config)}}));
  out->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  const auto& made = dynamic_cast<const EmbeddingLayer&>(*out);
  made.embeddings().assign(table.codes);
  made.embeddings_scale().assign(table.scales);
  return out;
}

class Rewriter {
 public:
  ModelHandle rewrite(const Model& model) {
    if (const auto* graph = dynamic_cast<const FunctionalModel*>(&model)) return rewrite(*graph);
    const auto& sequence = dynamic_cast<const SequentialModel&>(model);
    SequentialOptions options{.name = sequence.name(), .trainable = sequence.trainable()};
    if (const auto spec = sequence.input_spec()) {
      options.layers.push_back(LayerHandle<InputLayer>({.batch_shape = spec->shape,
                                                        .dtype = spec->dtype,
                                                        .ragged = spec->layout == Layout::kRagged,
                                                        .sparse = spec->layout == Layout::kSparse,
                                                        .name = sequence.input_name()}));
    }
    for (const auto& layer : sequence.layers()) options.layers.push_back(replacement(layer));
    return Sequential(std::move(options));
  }

 private:
  ModelHandle rewrite(const FunctionalModel& model) {
    NodeResults results;
    const auto replaced = [&](const Tensors& tensors) {
      return results.replaced(tensors, [](const TensorLike&) {
        return absl::StrCat(kCaller,
                            ": a tensor of the graph is not the result of one of its layers");
      });
    };
    for (const TensorLike& input : flatten(model.inputs())) results.add(input, input);
    for (const auto& node : model.nodes()) {
      if (dynamic_cast<const InputLayer*>(node->operation.get()) != nullptr) continue;
      const auto layer = std::dynamic_pointer_cast<Layer>(node->operation);
      const std::shared_ptr<Operation> operation =
          layer == nullptr ? node->operation : replacement({kAdopt, layer}).shared();
      results.add(*node, operation->replay(replaced(node->inputs), node->options));
    }
    return Functional({.inputs = model.inputs(),
                       .outputs = replaced(model.outputs()),
                       .name = model.name(),
                       .trainable = model.trainable()});
  }

  // Returns the replacement of a layer, which all its calls share.
  LayerHandle<Layer> replacement(const LayerHandle<Layer>& layer) {
    const auto it = replacements_.find(&*layer);
    if (it != replacements_.end()) return it->second;
    LayerHandle<Layer> out = layer;
    if (has_float_table(*layer)) {
      if (const auto* const embedding = dynamic_cast<const EmbeddingLayer*>(&*layer)) {
        out = quantized(*embedding);
      } else if (is_graph(*layer)) {
        out = rewrite(dynamic_cast<const Model&>(*layer));
      }
    }
    replacements_.emplace(&*layer, out);
    return out;
  }

  std::map<const Layer*, LayerHandle<Layer>> replacements_;
};

}  // namespace

ModelHandle with_int8_tables(const Model& model) {
  require_no_replica("save_model");
  require_built("save_model", model);
  if (const Layer* const unknown = unknown_to_keras(model)) {
    throw ValueError(kCaller, ": ", unknown->class_name(), " '", unknown->name(),
                     "' does not support int8 tables; set for_keras to replace each TPUEmbedding "
                     "with an Embedding");
  }
  if (!has_float_table(model)) {
    const auto self = std::dynamic_pointer_cast<const Model>(model.shared_from_this());
    return {kAdopt, std::const_pointer_cast<Model>(self)};
  }
  if (!is_graph(model)) {
    throw ValueError(kCaller, ": the model must be functional or sequential, but '", model.name(),
                     "' is a ", model.class_name());
  }
  return Rewriter().rewrite(model);
}

}  // namespace keel
