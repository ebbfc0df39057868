// The input side of the estimator: separates the features of a batch that are looked up in tables,
// and converts them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

namespace keel::tpu::v1 {

// The lookup of one feature. Ids are int64: [batch] or [batch, 1] for a table without a combiner,
// else sparse [batch, n] or ragged. Weights are float32 with the layout and positions of the ids.
struct EmbeddingInput {
  TensorLike ids;
  std::optional<TensorLike> weights = {};
};

// The result of split_inputs.
struct SplitInputs {
  std::map<std::string, EmbeddingInput> embedding_inputs = {};  // by feature key
  // The other features of the batch, without those used as weights. For each sequence feature it
  // also has "<key>_seq_length_", int64 [batch], the number of steps of each row that are looked
  // up.
  Tensors::Dict features = {};
};

// Separates the features of feature_to_config_dict, and their weights, from a batch.
//   dense ids of rank 1 or 2, table with a combiner   become sparse without zeros. This drops
//                                                     id 0; pass sparse ids to keep it
//   dense ids, table without a combiner               are unchanged
//   sparse ids of rank 2, ragged ids                  are unchanged
// An id of -1, which columns assign to unknown words, is dropped with its weight, except from dense
// ids that stay dense. The steps of a sequence keep their positions, so ragged sequences with an id
// of -1 become sparse.
// Throws ValueError, naming the feature's key, for a feature or weights that the batch does not
// contain (the weights of one key serve one feature); for ids that are not integers, for example
// strings (use CategoricalColumn::transform_feature first); for other ranks; for weights of dense
// ids of a table without a combiner; for dense weights; and for weights with other positions than
// the ids.
SplitInputs split_inputs(const Tensors::Dict& batch, const Configs& configs);

// Returns the specs of a model's features for a batch of these specs: those of
// SplitInputs::features and, under the features' keys, those of the activations, float32 [batch,
// dimension] or [batch, max_sequence_length, dimension] for sequences. Throws ValueError for a
// feature or weights that the batch does not contain.
Specs::Dict model_feature_specs(const Specs::Dict& batch, const Configs& configs);

}  // namespace keel::tpu::v1
