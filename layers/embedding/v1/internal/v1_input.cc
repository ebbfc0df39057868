#include <keel/layers/embedding/v1/internal/v1_input.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

namespace keel::tpu::v1 {
namespace {

// Removes the feature `key` from the batch and returns it.
template <class T>
T take(std::map<std::string, Nest<T>>& batch, const std::string& key, const std::string& what) {
  const auto it = batch.find(key);
  if (it == batch.end()) {
    throw ValueError("split_inputs: ", what, ": the batch has no feature '", key,
                     "', or another feature has already used it; add it to the dataset");
  }
  if (!it->second.is_leaf()) {
    throw ValueError("split_inputs: ", what, ": '", key, "' must be one tensor, received ",
                     it->second.structure());
  }
  T out = it->second.leaf();
  batch.erase(it);
  return out;
}

TensorLike replaced_values(const TensorLike& t, Tensor values) {
  if (t.layout() == Layout::kRagged) return RaggedTensor{std::move(values), t.ragged().row_splits};
  if (t.layout() == Layout::kDense) return values;
  return SparseTensor{t.sparse().indices, std::move(values), t.sparse().dense_shape};
}

// Returns the elements at the positions `kept` of a sparse or ragged tensor.
template <class T>
TensorLike select(const TensorLike& t, const std::vector<int64_t>& kept) {
  const auto n = static_cast<int64_t>(kept.size());
  Tensor values = Tensor::uninitialized({n}, DTypeOf<T>::kValue);
  const auto from = t.values().template data<T>();
  std::ranges::transform(kept, values.template mutable_data<T>().begin(),
                         [&](int64_t i) { return from[i]; });
  if (t.layout() == Layout::kRagged) {
    std::vector<int64_t> splits;
    for (const int64_t split : t.ragged().row_splits.template data<int64_t>()) {
      // The new split is the number of kept positions before the old split.
      splits.push_back(std::ranges::lower_bound(kept, split) - kept.begin());
    }
    return RaggedTensor{values, Tensor::from(splits, t.ragged().row_splits.shape())};
  }
  const auto indices = t.sparse().indices.template data<int64_t>();
  Tensor rows = Tensor::uninitialized({n, 2}, DType::kInt64);
  const auto to = rows.template mutable_data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    to[2 * i] = indices[2 * kept[i]];
    to[2 * i + 1] = indices[2 * kept[i] + 1];
  }
  return SparseTensor{rows, values, t.sparse().dense_shape};
}

// Returns the positions of all ids except `left_out`.
std::vector<int64_t> positions_without(const Tensor& ids, int64_t left_out) {
  std::vector<int64_t> out;
  const auto values = ids.data<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != left_out) out.push_back(static_cast<int64_t>(i));
  }
  return out;
}

// Converts ragged rows to sparse rows, in which positions can be empty.
SparseTensor as_sparse(const RaggedTensor& t) {
  const auto splits = t.row_splits.data<int64_t>();
  Tensor indices = Tensor::uninitialized({t.values.size(), 2}, DType::kInt64);
  const auto to = indices.mutable_data<int64_t>();
  int64_t width = 1;
  for (int64_t row = 0; row < t.rows(); ++row) {
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      to[2 * i] = row;
      to[2 * i + 1] = i - splits[row];
    }
    width = std::max(width, splits[row + 1] - splits[row]);
  }
  return {.indices = indices, .values = t.values, .dense_shape = {t.rows(), width}};
}

// Converts dense ids to sparse ids without the zeros.
SparseTensor non_zero(const Tensor& ids) {
  const int64_t columns = ids.rank() == 2 ? ids.dim(1) : 1;
  const std::vector<int64_t> kept = positions_without(ids, 0);
  std::vector<int64_t> indices, values;
  for (const int64_t i : kept) {
    indices.insert(indices.end(), {i / columns, i % columns});
    values.push_back(ids.data<int64_t>()[i]);
  }
  const auto n = static_cast<int64_t>(kept.size());
  return {.indices = Tensor::from(indices, {n, 2}),
          .values = Tensor::from(values, {n}),
          .dense_shape = {ids.dim(0), columns}};
}

// Checks the ids and converts them to int64.
TensorLike checked_ids(const std::string& caller, const TensorLike& ids) {
  if (!is_integer(ids.values().dtype())) {
    throw ValueError(caller, ": ids must be integers, received ", ids.values().dtype(),
                     "; convert strings to ids with transform_feature() of the column");
  }
  if (ids.layout() == Layout::kSparse) ids.sparse().validate(caller);
  if (ids.layout() == Layout::kRagged) ids.ragged().validate(caller);
  const int rank = ids.spec().shape.rank();
  if (rank > 2 || rank < (ids.layout() == Layout::kDense ? 1 : 2)) {
    throw ValueError(caller, ": ids must be dense of rank 1 or 2, sparse of rank 2 or ragged, ",
                     "received shape ", ids.spec().shape);
  }
  return replaced_values(ids, ids.values().cast(DType::kInt64));
}

TensorLike checked_weights(const std::string& caller, const TensorLike& ids,
                           const TensorLike& weights) {
  if (weights.layout() == Layout::kDense || weights.layout() != ids.layout()) {
    throw ValueError(caller, ": weights must have the layout of the ids, sparse or ragged");
  }
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && std::ranges::equal(a.raw(), b.raw());
  };
  const bool fits = ids.layout() == Layout::kSparse
                        ? same(ids.sparse().indices, weights.sparse().indices)
                        : same(ids.ragged().row_splits, weights.ragged().row_splits);
  if (!fits || weights.values().dtype() == DType::kString ||
      weights.values().size() != ids.values().size()) {
    throw ValueError(caller, ": weights must be numeric and have the positions of the ids");
  }
  return replaced_values(weights, weights.values().cast(DType::kFloat32));
}

// Returns the number of steps of each row up to its last id, at most `length`.
Tensor sequence_lengths(const TensorLike& ids, int64_t length) {
  const int64_t batch = ids.spec().shape[0];
  Tensor out = Tensor::zeros({batch}, DType::kInt64);
  const auto lengths = out.mutable_data<int64_t>();
  if (ids.layout() == Layout::kRagged) {
    const auto splits = ids.ragged().row_splits.data<int64_t>();
    for (int64_t row = 0; row < batch; ++row) lengths[row] = splits[row + 1] - splits[row];
  } else if (ids.layout() == Layout::kSparse) {
    const auto indices = ids.sparse().indices.data<int64_t>();
    for (size_t i = 0; i < indices.size(); i += 2) {
      lengths[indices[i]] = std::max(lengths[indices[i]], indices[i + 1] + 1);
    }
  } else {
    std::ranges::fill(lengths, ids.tensor().rank() == 2 ? ids.tensor().dim(1) : 1);
  }
  for (int64_t& n : lengths) n = std::min(n, length);
  return out;
}

// Reshapes [batch, 1] to [batch].
Tensor one_per_row(const Tensor& ids) {
  return ids.rank() == 2 && ids.dim(1) == 1 ? ids.reshaped({ids.dim(0)}) : ids;
}

EmbeddingInput input_of(const std::string& key, TensorLike ids, std::optional<TensorLike> weights,
                        bool combines, bool sequence) {
  const std::string caller = absl::StrCat("split_inputs: feature '", key, "'");
  ids = checked_ids(caller, ids);
  if (ids.layout() == Layout::kDense) {
    if (!combines && weights) {
      throw ValueError(caller,
                       ": received weights for a table without a combiner; set its combiner");
    }
    if (!combines) return {.ids = one_per_row(ids.tensor())};
    ids = non_zero(ids.tensor());
  }
  if (weights) weights = checked_weights(caller, ids, *weights);
  const std::vector<int64_t> kept = positions_without(ids.values(), -1);
  if (static_cast<int64_t>(kept.size()) == ids.values().size()) {
    return {.ids = std::move(ids), .weights = std::move(weights)};
  }
  if (sequence && ids.layout() == Layout::kRagged) {
    // Sparse ids let later steps keep their positions.
    ids = as_sparse(ids.ragged());
    if (weights) weights = as_sparse(weights->ragged());
  }
  if (weights) weights = select<float>(*weights, kept);
  return {.ids = select<int64_t>(ids, kept), .weights = std::move(weights)};
}

}  // namespace

SplitInputs split_inputs(const Tensors::Dict& batch, const Configs& configs) {
  SplitInputs out = {.features = batch};
  for (const auto& [key, feature] : configs.feature_to_config_dict) {
    const TensorLike ids = take(out.features, key, absl::StrCat("feature '", key, "'"));
    std::optional<TensorLike> weights;
    if (!feature->weight_key.empty()) {
      weights =
          take(out.features, feature->weight_key, absl::StrCat("weights of feature '", key, "'"));
    }
    const bool combines = configs.table_to_config_dict.at(feature->table_id)->combiner.has_value();
    const bool sequence = feature->max_sequence_length > 0;
    EmbeddingInput input = input_of(key, ids, std::move(weights), combines, sequence);
    if (sequence) {
      out.features.insert_or_assign(
          key + "_seq_length_",
          TensorLike(sequence_lengths(input.ids, feature->max_sequence_length)));
    }
    out.embedding_inputs.emplace(key, std::move(input));
  }
  return out;
}

Specs::Dict model_feature_specs(const Specs::Dict& batch, const Configs& configs) {
  Specs::Dict out = batch;
  Specs::Dict made;
  for (const auto& [key, feature] : configs.feature_to_config_dict) {
    const TensorSpec ids = take(out, key, absl::StrCat("feature '", key, "'"));
    if (!feature->weight_key.empty()) {
      take(out, feature->weight_key, absl::StrCat("weights of feature '", key, "'"));
    }
    const int64_t rows = ids.shape.rank() > 0 ? ids.shape[0] : kUnknown;
    const int64_t dim = configs.table_to_config_dict.at(feature->table_id)->dimension;
    const int64_t length = feature->max_sequence_length;
    const Shape shape = length > 0 ? Shape{rows, length, dim} : Shape{rows, dim};
    made.insert_or_assign(key, TensorSpec{.shape = shape});
    if (length > 0) {
      made.insert_or_assign(key + "_seq_length_",
                            TensorSpec{.shape = {rows}, .dtype = DType::kInt64});
    }
  }
  for (auto& [key, spec] : made) out.insert_or_assign(key, std::move(spec));
  return out;
}

}  // namespace keel::tpu::v1
