#include <keel/layers/preprocessing/internal/values.h>

#include <algorithm>
#include <utility>

#include <keel/autodiff/operation.h>

namespace keel {
namespace {

// The categories of all rows and their weights; without weights each category counts 1.
struct Rows {
  std::span<const int64_t> categories;
  std::span<const float> weights;
};

bool adds_up(OutputMode mode) { return mode == OutputMode::kCount || mode == OutputMode::kTfIdf; }

// Encodes rows; row r has the categories [splits(r), splits(r + 1)).
template <class Splits>
Tensor dense_rows(const Rows& rows, int64_t count, const Splits& splits, const Shape& shape,
                  OutputMode mode) {
  Tensor out = Tensor::zeros(shape);
  const int64_t depth = shape[-1];
  const bool counts = adds_up(mode);
  float* to = out.mutable_data<float>().data();
  for (int64_t row = 0; row < count; ++row, to += depth) {
    for (int64_t i = splits(row); i < splits(row + 1); ++i) {
      const int64_t category = rows.categories[i];
      if (category < 0) continue;
      const float weight = rows.weights.empty() ? 1.0F : rows.weights[i];
      to[category] = counts ? to[category] + weight : 1;
    }
  }
  return out;
}

// Appends the index of a row of the shape, without the last axis.
void append_row_index(int64_t row, const Shape& shape, std::vector<int64_t>& out) {
  const auto begin = std::ssize(out);
  out.resize(out.size() + shape.rank() - 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    out[begin + axis] = row % shape[axis];
    row /= shape[axis];
  }
}

// Returns the same numbers as dense_rows().
template <class Splits>
SparseTensor sparse_rows(const Rows& rows, int64_t count, const Splits& splits, const Shape& shape,
                         OutputMode mode) {
  std::vector<int64_t> indices;
  std::vector<float> values;
  std::vector<std::pair<int64_t, float>> entries;  // category and weight
  for (int64_t row = 0; row < count; ++row) {
    entries.clear();
    for (int64_t i = splits(row); i < splits(row + 1); ++i) {
      if (rows.categories[i] < 0) continue;
      entries.emplace_back(rows.categories[i], rows.weights.empty() ? 1.0F : rows.weights[i]);
    }
    // A stable sort adds up weights in the order in which dense_rows() does.
    std::ranges::stable_sort(entries, {}, &std::pair<int64_t, float>::first);
    for (size_t i = 0; i < entries.size(); ++i) {
      const auto& [category, weight] = entries[i];
      if (i > 0 && category == entries[i - 1].first) {
        if (adds_up(mode)) values.back() += weight;
        continue;
      }
      append_row_index(row, shape, indices);
      indices.push_back(category);
      values.push_back(adds_up(mode) ? weight : 1.0F);
    }
  }
  const auto n = std::ssize(values);
  return {Tensor::from(indices, {n, shape.rank()}), Tensor::from(values, {n}), shape};
}

template <class Splits>
TensorLike encode_rows(const Rows& rows, int64_t count, const Splits& splits, const Shape& shape,
                       const Encoding& encoding) {
  if (encoding.sparse) return sparse_rows(rows, count, splits, shape, encoding.mode);
  return dense_rows(rows, count, splits, shape, encoding.mode);
}

// Returns the shape of the result without the depth.
Shape encoded_rows(const TensorSpec& x, OutputMode mode) {
  if (x.layout != Layout::kDense) return x.shape.slice(0, 1);
  if (x.shape.rank() == 0) return {};
  if (mode == OutputMode::kOneHot && (x.shape[-1] != 1 || x.shape.rank() == 1)) return x.shape;
  return x.shape.drop_last();
}

TensorLike encode_sparse(const SparseTensor& x, const Rows& values, const Shape& shape,
                         const Encoding& encoding) {
  const auto indices = x.indices.data<int64_t>();
  const int64_t rank = x.indices.dim(1);
  const int64_t rows = x.dense_shape[0];
  std::vector<int64_t> splits(rows + 1, 0);
  for (int64_t i = 0; i < x.indices.dim(0); ++i) ++splits[indices[i * rank] + 1];
  for (int64_t row = 0; row < rows; ++row) splits[row + 1] += splits[row];
  return encode_rows(values, rows, [&](int64_t row) { return splits[row]; }, shape, encoding);
}

// Throws ValueError unless the weights have the positions of the categories.
void check_weights(const TensorLike& x, const TensorLike& weights, OutputMode mode,
                   const std::string& caller) {
  if (mode != OutputMode::kCount) {
    throw ValueError(caller, ": weights require output_mode 'count'");
  }
  const TensorSpec a = x.spec(), b = weights.spec();
  if (a.layout != b.layout || !compatible(a.shape, b.shape) ||
      (!x.is_symbolic() && !compatible(x.values().shape(), weights.values().shape()))) {
    throw ValueError(caller, ": weights must have the layout and shape of the categories, ",
                     a.shape, ", received ", b.shape);
  }
}

}  // namespace

TensorLike map_values(const TensorLike& x, DType dtype, FunctionRef<Tensor(const Tensor&)> fn) {
  if (x.is_symbolic()) {
    TensorSpec spec = x.spec();
    spec.dtype = dtype;
    return make_symbolic(spec, nullptr, 0);
  }
  if (x.layout() == Layout::kRagged) {
    return RaggedTensor{fn(x.ragged().values), x.ragged().row_splits};
  }
  if (x.layout() == Layout::kSparse) {
    return SparseTensor{x.sparse().indices, fn(x.sparse().values), x.sparse().dense_shape};
  }
  return fn(x.tensor());
}

void reject_vocabulary_files(const std::string& class_name, const Config& config) {
  const Config* const vocabulary = config.find("vocabulary");
  if (vocabulary == nullptr || !vocabulary->is_string()) return;
  const Config* const name = config.find("name");
  throw ValueError(class_name, " ", name != nullptr && name->is_string() ? name->string() : "",
                   ": the vocabulary is in the file '", vocabulary->string(), "', outside of the ",
                   "model; make the layer with read_vocabulary() and save the model again");
}

OutputMode output_mode_from_name(const std::string& name, const std::string& caller) {
  if (name == "int") return OutputMode::kInt;
  if (name == "one_hot") return OutputMode::kOneHot;
  if (name == "multi_hot") return OutputMode::kMultiHot;
  if (name == "count") return OutputMode::kCount;
  throw ValueError(caller,
                   ": output_mode must be 'int', 'one_hot', 'multi_hot' or 'count', received '",
                   name, "'");
}

void check_sparse(bool sparse, OutputMode mode, const std::string& caller) {
  if (sparse && mode == OutputMode::kInt) {
    throw ValueError(caller, ": sparse requires an encoding; set output_mode, or sparse = false");
  }
}

TensorLike encode_categories(const TensorLike& x, const Encoding& encoding,
                             const std::string& caller, const std::optional<TensorLike>& weights) {
  const OutputMode mode = encoding.mode;
  if (weights) check_weights(x, *weights, mode, caller);
  if (mode == OutputMode::kInt) return x;
  const TensorSpec spec = x.spec();
  if (mode == OutputMode::kOneHot && spec.layout != Layout::kDense) {
    throw ValueError(
        caller,
        ": one_hot requires a dense tensor; use multi_hot or count for ragged and sparse tensors");
  }
  if (spec.layout != Layout::kDense && spec.shape.rank() != 2) {
    throw ValueError(caller, ": ragged and sparse inputs must have rank 2, received shape ",
                     spec.shape);
  }
  const Shape shape = encoded_rows(spec, mode) + Shape{encoding.depth};
  if (x.is_symbolic()) {
    const Layout layout = encoding.sparse ? Layout::kSparse : Layout::kDense;
    return make_symbolic({.shape = shape, .layout = layout}, nullptr, 0);
  }
  Rows values = {.categories = x.values().data<int64_t>(), .weights = {}};
  if (weights) values.weights = weights->values().data<float>();
  if (spec.layout == Layout::kRagged) {
    const auto splits = x.ragged().row_splits.data<int64_t>();
    return encode_rows(values, shape[0], [&](int64_t row) { return splits[row]; }, shape, encoding);
  }
  if (spec.layout == Layout::kSparse) return encode_sparse(x.sparse(), values, shape, encoding);
  const bool one_each = mode == OutputMode::kOneHot || spec.shape.rank() == 0;
  const int64_t width = one_each ? 1 : spec.shape[-1];
  const int64_t rows = shape.drop_last().size();
  return encode_rows(values, rows, [&](int64_t row) { return row * width; }, shape, encoding);
}

void for_each_batch(const data::Dataset& batches, std::optional<int64_t> steps,
                    const std::string& caller, FunctionRef<void(const TensorLike&)> fn) {
  for (const Tensors& batch : steps ? batches.take(*steps) : batches) {
    if (!batch.is_leaf()) {
      throw TypeError(caller, ": adapt() requires a dataset of tensors, received ",
                      batch.structure());
    }
    fn(batch.leaf());
  }
}

}  // namespace keel
