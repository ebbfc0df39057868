// The input side of the estimator: which of a batch's features are looked up in tables, and in
// which form.
#pragma once

#include <map>
#include <optional>
#include <string>

#include <keel/framework/tensor_like.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

namespace keel::tpu::v1 {

// What one feature looks up. Ids are int64, [batch] or [batch, 1] for a table without combiner,
// else sparse [batch, n] or ragged. Weights are float32, of the same layout and positions.
struct EmbeddingInput {
  TensorLike ids;
  std::optional<TensorLike> weights = {};
};

struct SplitInputs {
  std::map<std::string, EmbeddingInput> embedding_inputs = {};  // by feature key
  // The other features of the batch, without those that weights came from; and of each sequence
  // feature "<key>_seq_length_", int64 [batch]: how many steps of a row are looked up.
  Tensors::Dict features = {};
};

// Takes the features of feature_to_config_dict, and their weights, out of a batch.
//   dense ids of rank 1 or 2, table with a combiner   become sparse: those that are not zero.
//                                                     So id 0 is lost; give it in sparse ids
//   dense ids, table without a combiner               stay as they are
//   sparse ids of rank 2, ragged ids                  stay as they are
// An id of -1, which columns give words they do not know, is left out with its weight; but not from
// dense ids that stay dense. The steps of a sequence keep their places: ragged ones become sparse.
// ValueError, with the feature's key, for: a feature or its weights that the batch does not have
// (a key of weights serves one feature); ids that are no integers, strings among them (use
// CategoricalColumn::transform_feature before); other ranks; weights for dense ids of a table
// without combiner, dense weights, and weights that do not stand where ids do.
SplitInputs split_inputs(const Tensors::Dict& batch, const Configs& configs);

// Specs of what a model gets of a batch of these specs: SplitInputs::features, and under the
// features' keys their activations, float32 [batch, dimension], or [batch, max_sequence_length,
// dimension] of sequences. ValueError for a feature or weights that the batch does not have.
Specs::Dict model_feature_specs(const Specs::Dict& batch, const Configs& configs);

}  // namespace keel::tpu::v1
