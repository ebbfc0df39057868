// EnqueueData and RaggedEnqueueData: the ids of one feature for one core, as the V1 engine takes
// them (tf.compat.v1.tpu, tpu_embedding.EnqueueData).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include <keel/layers/embedding/v1/v1_input.h>

namespace keel::tpu::v1 {

struct EnqueueData {
  Tensor embedding_indices;  // int32 or int64 [n]
  // int32 or int64, ascending: [n], the sample of each id, in [0, batch size per core); or [n, 2],
  // its sample and its place in it. Empty: one id for each sample.
  Tensor sample_indices = {};
  Tensor aggregation_weights = {};  // [n]; empty: ones

  static EnqueueData from_sparse_tensor(const SparseTensor& ids,
                                        const std::optional<SparseTensor>& weights = {});
};

struct RaggedEnqueueData {
  Tensor embedding_indices;         // int32 or int64 [n]
  Tensor row_splits;                // int64 [batch size per core + 1]
  Tensor aggregation_weights = {};  // [n]; empty: ones

  static RaggedEnqueueData from_ragged_tensor(const RaggedTensor& ids,
                                              const std::optional<RaggedTensor>& weights = {});
};

// What one core looks up, by feature.
using CoreEnqueueData = std::map<std::string, std::variant<EnqueueData, RaggedEnqueueData>>;
CoreEnqueueData enqueue_data_of(const std::map<std::string, EmbeddingInput>& inputs);

// The same as tensors of `batch` rows. ValueError, naming `caller`: a tensor that is not on the
// host (one of several devices), another number of rows, samples out of order or range, weights of
// another number than ids or for one id per sample, and one id per sample for a sequence.
EmbeddingInput embedding_input_of(const std::string& caller, const EnqueueData& data, int64_t batch,
                                  bool sequence);
EmbeddingInput embedding_input_of(const std::string& caller, const RaggedEnqueueData& data,
                                  int64_t batch);

}  // namespace keel::tpu::v1
