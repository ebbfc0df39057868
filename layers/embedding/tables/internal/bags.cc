#include <keel/layers/embedding/tables/internal/bags.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <iostream>
#include <numeric>

#include <keel/framework/base/errors.h>
#include <keel/framework/kernels/embedding/id_range.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>

namespace keel {
namespace {

// The inputs of collect().
struct Collector {
  const std::string& path;
  const FeatureConfig& feature;
  std::span<const int64_t> ids;
  std::span<const float> weights;  // empty: ones
  IdRule rule;

  // Returns the row to look up for position i; unset to drop the position.
  std::optional<int64_t> row_of(size_t i, IdCounts& counts) const {
    const int64_t id = ids[i];
    const int64_t rows = feature.table->vocabulary_size;
    const bool prunes_weight = rule == IdRule::kPrune && !weights.empty() && weights[i] <= 0 &&
                               feature.table->combiner != "sum";
    if (id >= 0 && id < rows) return prunes_weight ? std::nullopt : std::optional(id);
    switch (feature.id_policy.kind) {
      case IdPolicy::Kind::kDefaultRow:
        ++counts.replaced;
        return prunes_weight ? std::nullopt : std::optional(feature.id_policy.default_row);
      case IdPolicy::Kind::kIgnore:
        ++counts.dropped;
        return {};
      case IdPolicy::Kind::kDefault:
        if (rule != IdRule::kPrune || id >= 0) break;
        ++counts.dropped;
        return {};
      case IdPolicy::Kind::kError:
        break;
    }
    throw InvalidIdError("TPUEmbedding: feature '", path, "': id ", id, " at position ", i,
                         " is outside the table of ", rows, " rows");
  }
};

Tensor int64_values(const std::string& path, const Tensor& values) {
  if (values.dtype() != DType::kInt64 && values.dtype() != DType::kInt32) {
    throw ValueError("TPUEmbedding: feature '", path, "': ids must be int32 or int64, received ",
                     values.dtype());
  }
  return values.cast(DType::kInt64);
}

// Builds the bags from sample_of(i), the sample of position i, or -1 to drop it. This is a counting
// sort by sample. It is stable: the positions of one sample keep their order, which fixes the order
// of the floating-point sums.
template <class SampleOf>
FeatureBags collect(const Collector& c, Shape output_shape, bool sequence,
                    const SampleOf& sample_of) {
  const int64_t samples = output_shape.size();
  std::vector<int64_t> sample(c.ids.size());
  std::vector<int64_t> rows(c.ids.size());
  IdCounts invalid_ids;
  Tensor splits = Tensor::zeros({samples + 1}, DType::kInt64);
  const std::span<int64_t> starts = splits.mutable_data<int64_t>();
  for (size_t i = 0; i < c.ids.size(); ++i) {
    sample[i] = sample_of(i);
    if (sample[i] < 0) continue;
    const std::optional<int64_t> row = c.row_of(i, invalid_ids);
    if (row) {
      rows[i] = *row;
      ++starts[sample[i] + 1];
    } else {
      sample[i] = -1;
    }
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  const int64_t kept = starts[samples];
  FeatureBags out{
      .ids = Tensor::uninitialized({kept}, DType::kInt64),
      .row_splits = {},
      .weights = c.weights.empty() ? Tensor() : Tensor::uninitialized({kept}, DType::kFloat32),
      .output_shape = output_shape,
      .sequence = sequence,
      .invalid_ids = invalid_ids};
  std::vector<int64_t> next(starts.begin(), starts.end() - 1);
  const auto ids = out.ids.mutable_data<int64_t>();
  const auto weights = out.weights ? out.weights.mutable_data<float>() : std::span<float>();
  if (out.weights) out.weight_positions = Tensor::uninitialized({kept}, DType::kInt64);
  const auto positions =
      out.weights ? out.weight_positions.mutable_data<int64_t>() : std::span<int64_t>();
  for (size_t i = 0; i < c.ids.size(); ++i) {
    if (sample[i] < 0) continue;
    const int64_t at = next[sample[i]]++;
    ids[at] = rows[i];
    if (weights.empty()) continue;
    weights[at] = c.weights[i];
    positions[at] = static_cast<int64_t>(i);
  }
  out.row_splits = std::move(splits);
  return out;
}

// Returns the result of collect() for the case that keeps every position and every id, without
// visiting them one by one; unset if a position may be dropped or replaced. The bags share the
// inputs' tensors.
std::optional<FeatureBags> unchanged(const Collector& c, const Tensor& ids,
                                     const Tensor& row_splits, const Tensor& weights,
                                     const Shape& output_shape) {
  const bool prunes = c.rule == IdRule::kPrune && weights && c.feature.table->combiner != "sum";
  if (prunes || !kernels::all_in_range(c.ids, c.feature.table->vocabulary_size)) return {};
  return FeatureBags{.ids = ids.reshaped({ids.size()}),
                     .row_splits = row_splits,
                     .weights = weights,
                     .output_shape = output_shape};
}

FeatureBags dense_bags(const Collector& c, const Shape& output_shape) {
  // Dense ids keep their positions: no rule prunes them.
  Collector strict = c;
  strict.rule = IdRule::kStrict;
  return collect(strict, output_shape, false, [](size_t i) { return static_cast<int64_t>(i); });
}

FeatureBags sparse_bags(const Collector& c, const SparseTensor& input, const Shape& output_shape,
                        bool sequence) {
  const auto indices = input.indices.data<int64_t>();
  const int rank = input.dense_shape.rank();
  const int64_t length = c.feature.max_sequence_length;
  return collect(c, output_shape, sequence, [&](size_t i) -> int64_t {
    const int64_t* index = indices.data() + i * rank;
    if (sequence) return index[1] < length ? index[0] * length + index[1] : -1;
    int64_t sample = 0;
    for (int axis = 0; axis + 1 < rank; ++axis) {
      sample = sample * input.dense_shape[axis] + index[axis];
    }
    return sample;
  });
}

FeatureBags ragged_bags(const Collector& c, const RaggedTensor& input, const Shape& output_shape,
                        bool sequence) {
  const auto splits = input.row_splits.data<int64_t>();
  // Number of sequence steps; 0 if rows are pooled.
  const int64_t steps = sequence && input.rows() > 0 ? output_shape.size() / input.rows() : 0;
  size_t row = 0;
  return collect(c, output_shape, sequence, [&](size_t i) -> int64_t {
    const auto position = static_cast<int64_t>(i);
    // Positions ascend, so `row` only moves forward. The loop also skips empty rows.
    while (splits[row + 1] <= position) ++row;
    if (!sequence) return static_cast<int64_t>(row);
    const int64_t step = position - splits[row];
    return step < steps ? static_cast<int64_t>(row) * steps + step : -1;
  });
}

// Checks that the layout and positions of the weights match those of the ids. Returns the weights
// as float32.
Tensor matching_weights(const std::string& path, const FeatureConfig& feature,
                        const TensorLike& input, const TensorLike& weights) {
  if (feature.table->combiner == "max") {
    throw ValueError("TPUEmbedding: feature '", path, "': received weights for table '",
                     feature.table->name, "' with the combiner max, which has none; omit them");
  }
  if (input.layout() == Layout::kDense) {
    throw ValueError(
        "TPUEmbedding: feature '", path,
        "': received weights for dense ids; only sparse and ragged ids accept weights");
  }
  if (weights.layout() != input.layout()) {
    throw ValueError("TPUEmbedding: feature '", path,
                     "': weights and ids must have the same layout, both sparse or both ragged");
  }
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && a.dtype() == b.dtype() && std::ranges::equal(a.raw(), b.raw());
  };
  const bool fits = input.layout() == Layout::kSparse
                        ? same(input.sparse().indices, weights.sparse().indices)
                        : same(input.ragged().row_splits, weights.ragged().row_splits);
  if (!fits || weights.values().size() != input.values().size()) {
    throw ValueError("TPUEmbedding: feature '", path,
                     "': weights must have the same positions as the ids");
  }
  const Tensor out = weights.values().cast(DType::kFloat32);
  check_weights_are_finite("TPUEmbedding: feature '" + path + "'", out);
  return out;
}

Shape ragged_output_shape(const std::string& path, const FeatureConfig& feature, int64_t rows) {
  if (!feature.output_shape) {
    return feature.max_sequence_length > 0 ? Shape{rows, feature.max_sequence_length} : Shape{rows};
  }
  const Shape& shape = *feature.output_shape;
  if (!shape.fully_defined()) {
    // The only unknown dimension that is supported is the number of rows.
    if (compatible(shape, {rows})) return {rows};
    throw ValueError("TPUEmbedding: feature '", path, "': output_shape ", shape,
                     " of ragged ids must be fully defined, or [batch]");
  }
  const int64_t samples = shape.size();
  const bool fits =
      rows == kUnknown || samples == rows || (rows > 0 && samples > rows && samples % rows == 0);
  if (!fits) {
    throw ValueError("TPUEmbedding: feature '", path, "': output_shape ", *feature.output_shape,
                     " does not match ", rows, " rows");
  }
  return *feature.output_shape;
}

// Returns true if samples of rank 1 or 2 can be folded into `shape`, which has a larger rank, in
// the same order.
bool folds_into(const Shape& shape, const Shape& samples) {
  return samples.rank() <= 2 && samples.rank() < shape.rank() && shape.fully_defined() &&
         (!samples.fully_defined() || samples.size() == shape.size());
}

// Returns 0, 1, 2, ... in place of the ids of a table with dynamic ids, and -1 for ids that the
// IdPolicy leaves out.
Tensor numbers_of_keys(const std::string& path, const FeatureConfig& feature, const Tensor& keys) {
  Tensor out = Tensor::uninitialized({keys.size()}, DType::kInt64);
  const std::span<int64_t> numbers = out.mutable_data<int64_t>();
  std::iota(numbers.begin(), numbers.end(), 0);
  const IdPolicy::Kind policy = feature.id_policy.kind;
  if (policy == IdPolicy::Kind::kDefault) return out;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const bool is_string = keys.dtype() == DType::kString;
    const bool is_invalid =
        is_string ? keys.data<std::string>()[i].empty() : keys.data<int64_t>()[i] < 0;
    if (!is_invalid) continue;
    if (policy == IdPolicy::Kind::kError) {
      throw InvalidIdError("TPUEmbedding: feature '", path, "': the id at position ", i, " is ",
                           is_string ? "empty" : absl::StrCat(keys.data<int64_t>()[i]),
                           ", which IdPolicy::error() rejects");
    }
    numbers[i] = -1;
  }
  return out;
}

// Converts the positions of the ids to bags as if they were the ids, then replaces them by the ids.
FeatureBags key_bags(const std::string& path, const FeatureConfig& feature, const TensorLike& input,
                     const std::optional<TensorLike>& weights, bool pooled_dense) {
  const Tensor keys = key_values(
      absl::StrCat("TPUEmbedding: feature '", path, "': table '", feature.table->name, "'"),
      feature.table->dynamic->key, input.values());
  const Tensor numbers = numbers_of_keys(path, feature, keys);
  FeatureConfig positions = feature;
  positions.table = std::make_shared<TableConfig>(*feature.table);
  positions.table->dynamic.reset();
  positions.table->vocabulary_size = keys.size();
  positions.id_policy = IdPolicy::ignore();
  FeatureBags out =
      to_bags(path, positions, with_values(input, numbers), weights, IdRule::kStrict, pooled_dense);
  const auto found = out.ids.data<int64_t>();
  out.ids = keys_at(keys, found);
  return out;
}

}  // namespace

bool is_sequence(const FeatureConfig& feature, const TensorSpec& input) {
  return feature.max_sequence_length > 0 && !feature.output_shape &&
         input.layout != Layout::kDense && input.shape.rank() == 2;
}

void warn_of_unused_length(const std::string& path, const FeatureConfig& feature,
                           const TensorSpec& input) {
  if (feature.max_sequence_length == 0 || input.layout == Layout::kDense) return;
  if (is_sequence(feature, input)) return;
  std::cerr << absl::StrCat(
      "TPUEmbedding: feature '", path, "': max_sequence_length ", feature.max_sequence_length,
      " has no effect ",
      feature.output_shape ? "together with output_shape" : "on ids of rank above 2", "\n");
}

Shape bags_output_shape(const std::string& path, const FeatureConfig& feature,
                        const TensorSpec& input, bool pooled_dense) {
  const Shape& shape = input.shape;
  if (input.layout == Layout::kRagged) {
    if (shape.rank() != 2) {
      throw ValueError("TPUEmbedding: feature '", path,
                       "': ragged ids must have rank 2, received shape ", shape);
    }
    return ragged_output_shape(path, feature, shape[0]);
  }
  Shape out = shape;
  if (input.layout == Layout::kSparse) {
    if (shape.rank() < 2) {
      throw ValueError("TPUEmbedding: feature '", path,
                       "': sparse ids must have rank 2 or more, received shape ", shape);
    }
    out = is_sequence(feature, input) ? shape.with(1, feature.max_sequence_length)
                                      : shape.drop_last();
  } else if (pooled_dense) {
    if (shape.rank() == 0 || (shape.rank() > 1 && shape[-1] != 1)) {
      throw ValueError("TPUEmbedding: feature '", path,
                       "': dense ids must have shape [batch] or [..., 1], received ", shape);
    }
    if (shape.rank() > 1) out = shape.drop_last();
  }
  // Without an engine, the ids alone determine the shape.
  if (!feature.output_shape || !pooled_dense) return out;
  const Shape& given = *feature.output_shape;
  if (folds_into(given, out)) return given;
  if (!compatible(given, out)) {
    throw ValueError("TPUEmbedding: feature '", path, "': output_shape is ", given,
                     ", but the ids give ", out);
  }
  return out;
}

void check_equal_rows(const std::vector<std::string>& paths,
                      const std::vector<FeatureConfig>& features,
                      const std::vector<Shape>& output_shapes) {
  std::optional<size_t> first;
  for (size_t f = 0; f < features.size(); ++f) {
    const Shape& shape = output_shapes[f];
    if (features[f].output_shape || shape.rank() == 0 || shape[0] == kUnknown) continue;
    if (!first) first = f;
    if (shape[0] == output_shapes[*first][0]) continue;
    throw ValueError("TPUEmbedding: feature '", paths[f], "' has ", shape[0], " rows, feature '",
                     paths[*first], "' has ", output_shapes[*first][0],
                     "; the features of a batch must have the same number of rows");
  }
}

FeatureBags to_bags(const std::string& path, const FeatureConfig& feature, const TensorLike& input,
                    const std::optional<TensorLike>& weights, IdRule rule, bool pooled_dense) {
  const std::string caller = "TPUEmbedding: feature '" + path + "'";
  if (input.layout() == Layout::kRagged) input.ragged().validate(caller);
  if (input.layout() == Layout::kSparse) input.sparse().validate(caller);
  if (feature.table->dynamic) return key_bags(path, feature, input, weights, pooled_dense);
  const Tensor ids = int64_values(path, input.values());
  const Tensor matched = weights ? matching_weights(path, feature, input, *weights) : Tensor();
  const TensorSpec spec = input.spec();
  const Shape output_shape = bags_output_shape(path, feature, spec, pooled_dense);
  Collector collector{.path = path,
                      .feature = feature,
                      .ids = ids.data<int64_t>(),
                      .weights = matched ? matched.data<float>() : std::span<const float>(),
                      .rule = rule};
  if (input.layout() == Layout::kDense) {
    if (auto bags = unchanged(collector, ids, {}, {}, output_shape)) return *bags;
  }
  switch (input.layout()) {
    case Layout::kDense:
      return dense_bags(collector, output_shape);
    case Layout::kSparse:
      return sparse_bags(collector, input.sparse(), output_shape, is_sequence(feature, spec));
    case Layout::kRagged:
      break;
  }
  const bool steps = is_sequence(feature, spec) ||
                     (feature.output_shape && output_shape.size() != input.ragged().rows());
  // Sequence steps that only output_shape requests are unweighted rows of the table.
  if (steps && feature.output_shape) collector.weights = {};
  if (!steps) {
    const Tensor splits = input.ragged().row_splits;
    if (auto bags = unchanged(collector, ids, splits, matched, output_shape)) return *bags;
  }
  return ragged_bags(collector, input.ragged(), output_shape, steps);
}

}  // namespace keel
