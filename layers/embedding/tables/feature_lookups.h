// FeatureLookups: tells what a call of a layer looks up. Code that rewrites graphs, such as
// save_model for Keras, replaces the lookups of any layer with this interface.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// The lookup of one feature.
struct FeatureLookup {
  std::string path;                               // of the feature in its layer
  std::string table_name;                         // also of its values, "<table>/embeddings"
  const void* table;                              // identifies the table among those of the layer
  std::string combiner;                           // "sum", "mean" or "sqrtn"
  std::optional<DynamicVocabulary> dynamic = {};  // of the table
  int64_t max_row_length = kUnknown;              // pooled ids beyond it do not count
  TensorLike ids;                                 // of the call, dense, ragged or sparse
  std::optional<TensorLike> weights = {};         // as many as ids; unset: ones
};

// An interface of layers that look up pooled features.
class FeatureLookups {
 public:
  // Returns the lookups of a call that recorded these inputs, in the order of its flattened
  // outputs.
  virtual std::vector<FeatureLookup> lookups(const Tensors& inputs) const = 0;
  // Returns values of the features, in the order of lookups(), in the structure of the outputs.
  virtual Tensors pack_features(const std::vector<TensorLike>& values) const = 0;

 protected:
  ~FeatureLookups() = default;
};

}  // namespace keel
