#include <keel/layers/preprocessing/internal/values.h>

#include <keel/autodiff/operation.h>

namespace keel {
namespace {

// The categories of all rows and their weights; without weights each category counts 1.
struct Rows {
  std::span<const int64_t> categories;
  std::span<const float> weights;
};

// Encodes rows; row r has the categories [splits(r), splits(r + 1)).
template <class Splits>
Tensor encode_rows(const Rows& rows, int64_t count, const Splits& splits, const Shape& shape,
                   OutputMode mode) {
  Tensor out = Tensor::zeros(shape);
  const int64_t depth = shape[-1];
  const bool counts = mode == OutputMode::kCount || mode == OutputMode::kTfIdf;
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

// Returns the shape of the result without the depth.
Shape encoded_rows(const TensorSpec& x, OutputMode mode) {
  if (x.layout != Layout::kDense) return x.shape.slice(0, 1);
  if (x.shape.rank() == 0) return {};
  if (mode == OutputMode::kOneHot && (x.shape[-1] != 1 || x.shape.rank() == 1)) return x.shape;
  return x.shape.drop_last();
}

Tensor encode_sparse(const SparseTensor& x, const Rows& values, const Shape& shape,
                     OutputMode mode) {
  const auto indices = x.indices.data<int64_t>();
  const int64_t rank = x.indices.dim(1);
  const int64_t rows = x.dense_shape[0];
  std::vector<int64_t> splits(rows + 1, 0);
  for (int64_t i = 0; i < x.indices.dim(0); ++i) ++splits[indices[i * rank] + 1];
  for (int64_t row = 0; row < rows; ++row) splits[row + 1] += splits[row];
  return encode_rows(values, rows, [&](int64_t row) { return splits[row]; }, shape, mode);
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

TensorLike map_values(const TensorLike& x, DType dtype,
                      const std::function<Tensor(const Tensor&)>& fn) {
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

OutputMode output_mode_from_name(const std::string& name, const std::string& caller) {
  if (name == "int") return OutputMode::kInt;
  if (name == "one_hot") return OutputMode::kOneHot;
  if (name == "multi_hot") return OutputMode::kMultiHot;
  if (name == "count") return OutputMode::kCount;
  throw ValueError(caller,
                   ": output_mode must be 'int', 'one_hot', 'multi_hot' or 'count', received '",
                   name, "'");
}

TensorLike encode_categories(const TensorLike& x, OutputMode mode, int64_t depth,
                             const std::string& caller, const std::optional<TensorLike>& weights) {
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
  const Shape shape = encoded_rows(spec, mode) + Shape{depth};
  if (x.is_symbolic()) return Tensor::symbolic({.shape = shape});
  Rows values = {.categories = x.values().data<int64_t>(), .weights = {}};
  if (weights) values.weights = weights->values().data<float>();
  if (spec.layout == Layout::kRagged) {
    const auto splits = x.ragged().row_splits.data<int64_t>();
    return encode_rows(values, shape[0], [&](int64_t row) { return splits[row]; }, shape, mode);
  }
  if (spec.layout == Layout::kSparse) return encode_sparse(x.sparse(), values, shape, mode);
  const bool one_each = mode == OutputMode::kOneHot || spec.shape.rank() == 0;
  const int64_t width = one_each ? 1 : spec.shape[-1];
  const int64_t rows = shape.drop_last().size();
  return encode_rows(values, rows, [&](int64_t row) { return row * width; }, shape, mode);
}

void for_each_batch(const data::Dataset& batches, const std::string& caller,
                    const std::function<void(const TensorLike&)>& fn) {
  for (const Tensors& batch : batches) {
    if (!batch.is_leaf()) {
      throw TypeError(caller, ": adapt() requires a dataset of tensors, received ",
                      batch.structure());
    }
    fn(batch.leaf());
  }
}

}  // namespace keel
