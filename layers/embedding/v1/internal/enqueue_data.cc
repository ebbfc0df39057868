#include <keel/layers/embedding/v1/internal/enqueue_data.h>

#include <algorithm>

namespace keel::tpu::v1 {
namespace {

void check_hosts(const std::string& caller, std::initializer_list<Tensor> tensors) {
  for (const Tensor& t : tensors) {
    if (t && !t.device().is_host()) {
      throw ValueError(caller, ": the data of a core must be on the host, received a tensor on ",
                       t.device().name());
    }
  }
}

void check_ids(const std::string& caller, const Tensor& ids, const Tensor& weights) {
  if (!ids || ids.rank() != 1) throw ValueError(caller, ": embedding_indices must have rank 1");
  if (weights && weights.shape() != ids.shape()) {
    throw ValueError(caller, ": aggregation_weights must have the shape of embedding_indices, ",
                     ids.shape(), ", received ", weights.shape());
  }
}

// Returns [n, 2]: the sample of each id, and the number of ids before it in the same sample.
Tensor with_places(const Tensor& samples) {
  const auto from = samples.data<int64_t>();
  Tensor out = Tensor::uninitialized({samples.size(), 2}, DType::kInt64);
  const auto to = out.mutable_data<int64_t>();
  int64_t place = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    place = i > 0 && from[i] == from[i - 1] ? place + 1 : 0;
    to[2 * i] = from[i];
    to[2 * i + 1] = place;
  }
  return out;
}

// Returns the number of columns that the positions require, at least 1.
int64_t width_of(const Tensor& indices) {
  int64_t width = 1;
  const auto values = indices.data<int64_t>();
  for (size_t i = 1; i < values.size(); i += 2) width = std::max(width, values[i] + 1);
  return width;
}

}  // namespace

EnqueueData EnqueueData::from_sparse_tensor(const SparseTensor& ids,
                                            const std::optional<SparseTensor>& weights) {
  return {.embedding_indices = ids.values,
          .sample_indices = ids.indices,
          .aggregation_weights = weights ? weights->values : Tensor()};
}

RaggedEnqueueData RaggedEnqueueData::from_ragged_tensor(
    const RaggedTensor& ids, const std::optional<RaggedTensor>& weights) {
  return {.embedding_indices = ids.values,
          .row_splits = ids.row_splits,
          .aggregation_weights = weights ? weights->values : Tensor()};
}

CoreEnqueueData enqueue_data_of(const std::map<std::string, EmbeddingInput>& inputs) {
  CoreEnqueueData out;
  for (const auto& [key, input] : inputs) {
    const Tensor weights = input.weights ? input.weights->values() : Tensor();
    if (input.ids.layout() == Layout::kRagged) {
      out[key] = RaggedEnqueueData{input.ids.values(), input.ids.ragged().row_splits, weights};
    } else if (input.ids.layout() == Layout::kSparse) {
      out[key] = EnqueueData{input.ids.values(), input.ids.sparse().indices, weights};
    } else {
      const Tensor& ids = input.ids.tensor();
      out[key] = EnqueueData{.embedding_indices = ids.reshaped({ids.size()})};
    }
  }
  return out;
}

EmbeddingInput embedding_input_of(const std::string& caller, const EnqueueData& data, int64_t batch,
                                  bool sequence) {
  const Tensor &ids = data.embedding_indices, &weights = data.aggregation_weights;
  check_hosts(caller, {ids, data.sample_indices, weights});
  check_ids(caller, ids, weights);
  if (!data.sample_indices) {
    if (ids.size() != batch || weights || sequence) {
      throw ValueError(
          caller, ": without sample_indices, each of ", batch,
          " samples must have exactly one id, and weights and sequences are not allowed; received ",
          ids.size(), " ids");
    }
    return {.ids = ids};
  }
  const Shape& shape = data.sample_indices.shape();
  const bool fits = shape == Shape({ids.size()}) || shape == Shape({ids.size(), 2});
  if (!fits || !is_integer(data.sample_indices.dtype())) {
    throw ValueError(caller, ": sample_indices must be integers of shape [n] or [n, 2] for n = ",
                     ids.size(), " ids, received ", data.sample_indices.dtype(), " ", shape);
  }
  Tensor indices = data.sample_indices.cast(DType::kInt64);
  if (indices.rank() == 1) indices = with_places(indices);
  const auto sparse = [&](const Tensor& values) {
    return SparseTensor{indices, values, {batch, width_of(indices)}};
  };
  EmbeddingInput out = {.ids = sparse(ids)};
  out.ids.sparse().validate(caller);
  if (weights) out.weights = sparse(weights);
  return out;
}

EmbeddingInput embedding_input_of(const std::string& caller, const RaggedEnqueueData& data,
                                  int64_t batch) {
  const Tensor &ids = data.embedding_indices, &weights = data.aggregation_weights;
  check_hosts(caller, {ids, data.row_splits, weights});
  check_ids(caller, ids, weights);
  const RaggedTensor rows = {ids, data.row_splits};
  rows.validate(caller);
  if (rows.rows() != batch) {
    throw ValueError(caller, ": row_splits must describe ", batch, " samples, received ",
                     rows.rows());
  }
  EmbeddingInput out = {.ids = rows};
  if (weights) out.weights = RaggedTensor{weights, data.row_splits};
  return out;
}

}  // namespace keel::tpu::v1
