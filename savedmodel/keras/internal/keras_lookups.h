// KerasLookups replaces the lookups of embedding layers by layers of Keras. Private to savedmodel.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/layers/functional/internal/node_results.h>
#include <keel/layers/layer.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>
#include <keel/savedmodel/keras/min_count.h>

namespace keel {

class EmbedReduceLayer;
class EmbeddingLayer;
class FeatureLookups;
class TPUEmbeddingLayer;

// Replaces the calls of TPUEmbedding and DistributedEmbedding layers in one model, and those of
// Embedding and EmbedReduce layers with dynamic ids. All features of a table share one copy of it.
class KerasLookups {
 public:
  // Adds the replacements of calls and of ragged and sparse inputs to `results`. `unique` converts
  // a proposed layer name to one that is not used yet.
  KerasLookups(NodeResults& results, const MinCount& min_count,
               std::function<std::string(std::string)> unique)
      : results_(results), min_count_(min_count), unique_(std::move(unique)) {}

  // Returns true if add() replaces the calls of a layer.
  static bool replaces(const Operation& operation);
  // Adds the replacement of one call. Throws ValueError, naming the layer and the feature, for a
  // lookup that Keras cannot express.
  void add(const GraphNode& node);

  // Returns a new input of a model.
  static TensorLike new_input(const Shape& shape, DType dtype, const std::string& name);
  // Returns `tensors` with each tensor replaced. Throws ValueError for a ragged or sparse input
  // that is not a feature.
  Tensors replaced(const Tensors& tensors) const;
  // Returns the new inputs that tell which ids are present, by the names of the inputs of ids.
  const std::map<std::string, Tensor>& presence() const { return presence_; }

 private:
  struct Feature;  // one feature of a call
  // The layers of one table with dynamic ids.
  struct DynamicLayers {
    LayerHandle<Layer> lookup, embedding;
  };

  void add_tpu_embedding(const GraphNode& node, const TPUEmbeddingLayer& layer);
  void add_feature_lookups(const GraphNode& node, const Layer& layer, const FeatureLookups& tables);
  void add_embedding(const GraphNode& node, const EmbeddingLayer& layer);
  void add_reduce(const GraphNode& node, const EmbedReduceLayer& layer);

  Tensor look_up(const Feature& feature);
  Tensor look_up_and_reduce(const Feature& feature);
  Tensor look_up_dense(const Feature& feature);
  Tensor pool(const Feature& feature);
  Tensor pool_dense(const Feature& feature);
  Tensor pooling(const Feature& feature, const Tensor& weights);
  Tensor weighted_mean(const Feature& feature, const Tensor& rows, const Tensor& weights);

  Tensor reshaped(const Feature& feature, const Tensor& x);
  Tensor multiplied(const Feature& feature, const Tensor& rows, const Tensor& weights);
  Tensor rescaled(const Feature& feature, const char* what, const Tensor& x, double scale,
                  double offset);
  Tensor dot(const Feature& feature, const char* what, const Tensor& x, const Tensor& y);

  Tensor dense_input(const Feature& feature, const TensorLike& tensor, const Shape& shape,
                     DType dtype);
  Tensor presence_of(const Feature& feature, const Shape& shape);

  Tensor rows_of(const Feature& feature, const Tensor& ids);
  LayerHandle<Layer> table_of(const Feature& feature, const Tensor& ids);
  Tensor looked_up(const NamedDynamicTable& table, const Layer& layer, const std::string& where,
                   const Tensor& ids);
  DynamicLayers dynamic_layers(const NamedDynamicTable& table, const std::string& where);
  std::string unique(const Feature& feature, const char* what);

  NodeResults& results_;
  const MinCount& min_count_;
  const std::function<std::string(std::string)> unique_;
  std::map<std::string, Tensor> presence_;  // new weights, by the name of the ids
  // The copies of tables, by the layer and what identifies the table in it.
  std::map<std::pair<const Layer*, const void*>, LayerHandle<Layer>> tables_;
  std::map<std::pair<const Layer*, std::string>, DynamicLayers> dynamic_tables_;  // by name
};

}  // namespace keel
