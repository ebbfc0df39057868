// EnqueueData and RaggedEnqueueData: the ids of one feature for one core, in the form of the V1
// engine (tf.compat.v1.tpu, tpu_embedding.EnqueueData).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include <keel/layers/embedding/v1/v1_input.h>

namespace keel::tpu::v1 {

// The ids of one feature in sparse or dense form.
struct EnqueueData {
  Tensor embedding_indices;  // int32 or int64 [n]
  // int32 or int64, ascending: [n], the sample of each id, in [0, batch size per core); or [n, 2],
  // the sample of each id and its position in the sample. Empty: one id for each sample.
  Tensor sample_indices = {};
  Tensor aggregation_weights = {};  // [n]; empty: ones

  // Converts sparse ids and their weights.
  static EnqueueData from_sparse_tensor(const SparseTensor& ids,
                                        const std::optional<SparseTensor>& weights = {});
};

// The ids of one feature in ragged form.
struct RaggedEnqueueData {
  Tensor embedding_indices;         // int32 or int64 [n]
  Tensor row_splits;                // int64 [batch size per core + 1]
  Tensor aggregation_weights = {};  // [n]; empty: ones

  // Converts ragged ids and their weights.
  static RaggedEnqueueData from_ragged_tensor(const RaggedTensor& ids,
                                              const std::optional<RaggedTensor>& weights = {});
};

// The lookups of one core, by feature.
using CoreEnqueueData = std::map<std::string, std::variant<EnqueueData, RaggedEnqueueData>>;
// Converts the embedding inputs of split_inputs to enqueue data.
CoreEnqueueData enqueue_data_of(const std::map<std::string, EmbeddingInput>& inputs);

// Converts enqueue data to tensors of `batch` rows. Throws ValueError, naming `caller`, for a
// tensor that is not on the host, for another number of rows, for samples that are unordered or out
// of range, for weights whose number differs from that of the ids, for weights of one id per
// sample, and for one id per sample of a sequence.
EmbeddingInput embedding_input_of(const std::string& caller, const EnqueueData& data, int64_t batch,
                                  bool sequence);
EmbeddingInput embedding_input_of(const std::string& caller, const RaggedEnqueueData& data,
                                  int64_t batch);

}  // namespace keel::tpu::v1
