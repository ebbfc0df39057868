// Converts the ids of one core between the forms of the input pipeline and of the engine.
#pragma once

#include <map>
#include <string>

#include <keel/layers/embedding/v1/internal/v1_input.h>
#include <keel/layers/embedding/v1/tpu_embedding_v1.h>

namespace keel::tpu::v1 {

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
