// The weights of a model in the order and with the names of Keras's files.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>

namespace keel {

// A weight of a layer and its name in files.
struct NamedWeight {
  std::string name;  // within the group of the layer: "dense/kernel:0"
  StateEntry entry;
  const Layer* owner = nullptr;  // the layer or sublayer whose weight it is
};

// The weights of one layer of the model, including those of its sublayers: trainable weights first,
// then the others. Names are unique.
struct LayerWeights {
  // A table for unbounded ids, and its prefix in files: "tpu_embedding/items/".
  struct Table {
    std::string prefix;
    NamedDynamicTable table;
  };
  std::string layer;
  bool nested = false;  // true if the layer has sublayers
  std::vector<NamedWeight> weights;
  std::vector<Table> dynamic_tables = {};

  // Returns true if the layer has nothing to save.
  bool empty() const { return weights.empty() && dynamic_tables.empty(); }
};

// The weights of a layer with LoRA: with the product of its matrices in the kernel, or the kernel
// and the matrices.
enum class LoraWeights { kMerged, kSeparate };

// Returns the weights of each layer of the model.
std::vector<LayerWeights> weights_by_layer(const Model& model,
                                           LoraWeights lora = LoraWeights::kMerged);
// Returns the weights that belong to the model itself and to none of its layers.
LayerWeights top_level_weights(const Model& model);

// Returns an empty string if a stored tensor fits a weight, and otherwise the reason: " requires
// shape (3, 2), the file has (4, 2)". Numeric dtypes are converted, except int8, whose values are
// codes.
std::string spec_mismatch(const TensorSpec& needed, const TensorSpec& stored);

// Throws RuntimeError, naming `caller`, if a layer in `root` has not created its weights yet.
void require_built(const std::string& caller, const Layer& root);
// Throws RuntimeError, naming `caller`, inside one of several replicas, where state must not be
// read or assigned.
void require_no_replica(const std::string& caller);

}  // namespace keel
