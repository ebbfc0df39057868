#include <keel/layers/embedding/tables/internal/id_rows.h>

#include <algorithm>
#include <numeric>

#include <keel/autodiff/ops.h>
#include <keel/framework/base/errors.h>
#include <keel/framework/exact_cast.h>
#include <keel/framework/kernels/update_rules/finite.h>

namespace keel {
namespace {

bool same_values(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::ranges::equal(a.raw(), b.raw());
}

// Returns the row splits of dense rows.
Tensor even_splits(int64_t rows, int64_t length) {
  Tensor out = Tensor::uninitialized({rows + 1}, DType::kInt64);
  const auto splits = out.mutable_data<int64_t>();
  for (int64_t r = 0; r <= rows; ++r) splits[r] = r * length;
  return out;
}

void check_ids(const std::string& caller, const Tensor& ids, int64_t vocabulary_size) {
  const auto values = ids.data<int64_t>();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || values[i] >= vocabulary_size) {
      throw InvalidIdError(caller, ": id ", values[i], " at position ", i,
                           " is outside the table of ", vocabulary_size, " rows");
    }
  }
}

// Returns one weight for each position, given one for each row or one for all.
Tensor spread_weights(const std::string& caller, const Tensor& weights, const Tensor& row_splits) {
  const auto splits = row_splits.data<int64_t>();
  const Tensor values = weights.cast(DType::kFloat32);
  check_weights_are_finite(caller, values);
  const auto w = values.data<float>();
  if (weights.rank() == 1 && std::ssize(w) != std::ssize(splits) - 1) {
    throw ValueError(caller, ": weights of shape ", weights.shape(), " do not match ids of ",
                     splits.size() - 1, " rows");
  }
  Tensor out = Tensor::uninitialized({splits.back()}, DType::kFloat32);
  const auto to = out.mutable_data<float>();
  for (size_t r = 0; r + 1 < splits.size(); ++r) {
    std::fill(to.begin() + splits[r], to.begin() + splits[r + 1], w[weights.rank() == 0 ? 0 : r]);
  }
  return out;
}

// Checks that the layout and positions of the weights match those of the ids. Returns one weight
// for each position.
Tensor weights_of(const std::string& caller, const TensorLike& ids, const TensorLike& weights,
                  const Tensor& row_splits) {
  if (!is_floating(weights.values().dtype()) && weights.values().dtype() != DType::kInt64 &&
      weights.values().dtype() != DType::kInt32) {
    throw TypeError(caller, ": weights must be numeric, received ", weights.values().dtype());
  }
  if (weights.layout() == Layout::kDense && weights.tensor().rank() < 2) {
    return spread_weights(caller, weights.tensor(), row_splits);
  }
  if (weights.layout() != ids.layout()) {
    throw TypeError(caller,
                    ": weights and ids must have the same layout: both dense, sparse or ragged");
  }
  const bool fits = ids.layout() == Layout::kDense
                        ? weights.tensor().shape() == ids.tensor().shape()
                    : ids.layout() == Layout::kRagged
                        ? same_values(weights.ragged().row_splits, row_splits)
                        : same_values(weights.sparse().indices, ids.sparse().indices);
  if (!fits || weights.values().size() != ids.values().size()) {
    throw ValueError(caller, ": weights of shape ", weights.spec().shape,
                     " do not have the positions of the ids of shape ", ids.spec().shape);
  }
  // Ops, so that tapes record how the result depends on the weights.
  Tensor out = ops::cast(weights.values(), DType::kFloat32);
  if (out.rank() != 1) out = ops::reshape(out, {out.size()});
  check_weights_are_finite(caller, out);
  return out;
}

// Returns the row splits of sparse entries, which are in row-major order.
Tensor sparse_splits(const SparseTensor& sparse) {
  const auto indices = sparse.indices.data<int64_t>();
  Tensor out = Tensor::zeros({sparse.dense_shape[0] + 1}, DType::kInt64);
  const auto splits = out.mutable_data<int64_t>();
  for (size_t i = 0; i < indices.size(); i += 2) ++splits[indices[i] + 1];
  std::partial_sum(splits.begin(), splits.end(), splits.begin());
  return out;
}

Tensor splits_of(const TensorLike& ids) {
  if (ids.layout() == Layout::kRagged) return ids.ragged().row_splits;
  if (ids.layout() == Layout::kSparse) return sparse_splits(ids.sparse());
  const Shape& shape = ids.tensor().shape();
  return even_splits(shape[0], shape.rank() == 1 ? 1 : shape[1]);
}

// Truncates each row to its first max_row_length positions.
void cut_rows(IdRows& rows, int64_t max_row_length) {
  const auto splits = rows.row_splits.data<int64_t>();
  const auto too_long = [&](size_t r) { return splits[r + 1] - splits[r] > max_row_length; };
  size_t first = 0;
  // Return without copying if no row is too long.
  while (first + 1 < splits.size() && !too_long(first)) ++first;
  if (first + 1 >= splits.size()) return;
  std::vector<int64_t> ids, new_splits = {0};
  std::vector<float> weights;
  for (size_t r = 0; r + 1 < splits.size(); ++r) {
    const int64_t end = std::min(splits[r + 1], splits[r] + max_row_length);
    const auto append = [&]<class T>(const Tensor& from, std::vector<T>& to) {
      const auto values = from.data<T>();
      to.insert(to.end(), values.begin() + splits[r], values.begin() + end);
    };
    append(rows.ids, ids);
    if (rows.weights) append(rows.weights, weights);
    new_splits.push_back(std::ssize(ids));
  }
  rows.ids = Tensor::from(ids, {std::ssize(ids)});
  if (rows.weights) rows.weights = Tensor::from(weights, {std::ssize(weights)});
  rows.row_splits = Tensor::from(new_splits, {std::ssize(new_splits)});
}

}  // namespace

namespace {

void check_rank(const std::string& caller, const TensorSpec& ids) {
  const int rank = ids.shape.rank();
  if (rank == 2 || (rank == 1 && ids.layout == Layout::kDense)) return;
  throw ValueError(caller, ": ids must have shape [rows] or [rows, n], received ", ids.shape);
}

template <class Key>
Tensor keys_of_type(const Tensor& of, std::span<const int64_t> positions) {
  const auto from = of.data<Key>();
  std::vector<Key> out;
  out.reserve(positions.size());
  for (const int64_t position : positions) out.push_back(from[position]);
  return Tensor::from(out, {std::ssize(out)});
}

}  // namespace

void check_key_type(const std::string& caller, KeyType type, DType ids) {
  const bool strings = type == KeyType::kString;
  if (strings ? ids == DType::kString : ids == DType::kInt64 || ids == DType::kInt32) return;
  throw TypeError(caller, ": ids must be ", strings ? "strings" : "int32 or int64",
                  ", the type of the table's keys, received ", ids);
}

void check_id_spec(const std::string& caller, const TensorSpec& ids) {
  if (ids.dtype != DType::kInt64 && ids.dtype != DType::kInt32 && !is_floating(ids.dtype)) {
    throw ValueError(caller, ": ids must be numeric, received ", ids.dtype);
  }
  check_rank(caller, ids);
}

void check_key_spec(const std::string& caller, KeyType type, const TensorSpec& ids) {
  check_key_type(caller, type, ids.dtype);
  check_rank(caller, ids);
}

Tensor key_values(const std::string& caller, KeyType type, const Tensor& ids) {
  check_key_type(caller, type, ids.dtype());
  const Tensor keys = type == KeyType::kString ? ids : ids.cast(DType::kInt64);
  return keys.reshaped({keys.size()});
}

Tensor keys_at(const Tensor& keys, std::span<const int64_t> positions) {
  return keys.dtype() == DType::kString ? keys_of_type<std::string>(keys, positions)
                                        : keys_of_type<int64_t>(keys, positions);
}

TensorLike with_values(const TensorLike& input, const Tensor& values) {
  switch (input.layout()) {
    case Layout::kDense:
      return values.reshaped(input.values().shape());
    case Layout::kSparse: {
      SparseTensor out = input.sparse();
      out.values = values;
      return out;
    }
    case Layout::kRagged:
      break;
  }
  RaggedTensor out = input.ragged();
  out.values = values;
  return out;
}

void check_weights_are_finite(const std::string& caller, const Tensor& weights) {
  const auto values = weights.data<float>();
  const int64_t bad = kernels::first_not_finite(values);
  if (bad < 0) return;
  throw ValueError(caller, ": the weight at position ", bad, " is ", values[bad],
                   "; weights must be finite");
}

IdRows to_id_rows(const std::string& caller, const TensorLike& ids,
                  const std::optional<TensorLike>& weights, const IdRowsOptions& options) {
  const TensorSpec spec = ids.spec();
  check_id_spec(caller, spec);
  if (ids.layout() == Layout::kRagged) ids.ragged().validate(caller);
  if (ids.layout() == Layout::kSparse) ids.sparse().validate(caller);
  const Tensor numbers = integer_ids(caller, ids).values();
  const Tensor values = numbers.reshaped({numbers.size()});
  check_ids(caller, values, options.vocabulary_size);
  const bool single = spec.shape.rank() == 1;
  const Tensor row_splits = splits_of(ids);
  Tensor matched = weights ? weights_of(caller, ids, *weights, row_splits) : Tensor();
  if (single && options.combiner != "sum") matched = {};
  IdRows out = {.ids = values, .row_splits = row_splits, .weights = std::move(matched)};
  if (!single && options.max_row_length != kUnknown) cut_rows(out, options.max_row_length);
  return out;
}

// Converts the positions of the ids to rows as if they were the ids, then replaces them by the ids.
IdRows to_key_rows(const std::string& caller, KeyType type, const TensorLike& ids,
                   const std::optional<TensorLike>& weights, const IdRowsOptions& options) {
  const Tensor keys = key_values(caller, type, ids.values());
  Tensor positions = Tensor::uninitialized({keys.size()}, DType::kInt64);
  const auto numbers = positions.mutable_data<int64_t>();
  std::iota(numbers.begin(), numbers.end(), 0);
  IdRowsOptions all = options;
  all.vocabulary_size = keys.size();
  IdRows out = to_id_rows(caller, with_values(ids, positions), weights, all);
  out.ids = keys_at(keys, out.ids.data<int64_t>());
  return out;
}

}  // namespace keel
