#include <algorithm>
#include <numeric>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/kernels/embedding/id_range.h>
#include <keel/framework/kernels/embedding/unique.h>

namespace keel {
namespace {

using ops::Combiner;
using ops::internal::kGrain;

// Checks that ids are int32 or int64 and converts them to int64, which the kernels take.
Tensor ids64(const char* caller, const Tensor& ids) {
  if (ids.dtype() != DType::kInt32 && ids.dtype() != DType::kInt64) {
    throw TypeError(caller, ": ids must be int32 or int64, received ", ids.dtype());
  }
  return ops::cast(ids, DType::kInt64);
}

void check_rank(const char* caller, const char* what, const Shape& shape, int rank) {
  if (shape.rank() != rank) {
    throw ValueError(caller, ": ", what, " must have rank ", rank, ", received shape ", shape);
  }
}

void check_one_length(const char* caller, const char* what, const Shape& a, const char* other,
                      const Shape& b) {
  if (!compatible(a.slice(0, 1), b.slice(0, 1))) {
    throw ValueError(caller, ": ", what, " and ", other,
                     " must have the same length, received shapes ", a, " and ", b);
  }
}

void check_ids(const char* caller, std::span<const int64_t> ids, int64_t rows) {
  if (kernels::all_in_range(ids, rows)) return;
  const auto at = std::ranges::find_if(ids, [rows](int64_t id) { return id < 0 || id >= rows; });
  throw ValueError(caller, ": id ", *at, " is outside the table of ", rows, " rows at position ",
                   at - ids.begin());
}

void check_splits(const char* caller, std::span<const int64_t> splits, int64_t n) {
  if (splits.empty() || splits.front() != 0 || splits.back() != n ||
      !std::ranges::is_sorted(splits)) {
    throw ValueError(caller, ": row_splits must not decrease and must go from 0 to the ", n,
                     " ids");
  }
}

// Computes params[ids] for int64 ids.
class Gather final : public Op {
 public:
  Gather() : Op("Gather") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = gathered(in[0].shape, in[1].shape), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor& params = in[0];
    const auto ids = in[1].data<int64_t>();
    check_ids("gather", ids, params.dim(0));
    Tensor out = Tensor::uninitialized(gathered(params.shape(), in[1].shape()), params.dtype());
    const int64_t dim = params.shape().slice(1, params.rank()).size();
    const auto n = static_cast<int64_t>(ids.size());
    if (out.size() == 0) return {out};
    visit_any(params.dtype(), [&]<class T>(const T&) {
      // The rows of a variable may lie between those of its slots, `step` elements apart.
      const auto [from, step] = params.rows<T>();
      T* to = out.mutable_data<T>().data();
      if constexpr (std::floating_point<T>) {
        kernels::gather_rows(from, dim, ids.data(), n, to, step);
      } else {
        for (int64_t i = 0; i < n; ++i) std::copy_n(from + ids[i] * step, dim, to + i * dim);
      }
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Shape& params = args.input_specs[0].shape;
    const int64_t n = args.input_specs[1].shape.size();
    const Tensor dy = args.output_gradients[0].dense();
    return {IndexedSlices{.ids = ops::reshape(args.inputs[1], {n}),
                          .values = ops::reshape(dy, Shape{n} + params.slice(1, params.rank())),
                          .dense_shape = params},
            Gradient()};
  }
  Retain retain() const override { return {.inputs = 2, .outputs = 0}; }

 private:
  static Shape gathered(const Shape& params, const Shape& ids) {
    if (params.rank() == 0)
      throw ValueError("gather: params must have at least rank 1, received a scalar");
    return ids + params.slice(1, params.rank());
  }
};

// Computes codes[ids] / scales[ids] for int64 ids.
class GatherQuantized final : public Op {
 public:
  GatherQuantized() : Op("GatherQuantized") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    constexpr const char* kCaller = "gather_quantized";
    if (in[0].dtype != DType::kInt8 || in[1].dtype != DType::kFloat32) {
      throw TypeError(kCaller, ": requires int8 codes and float32 scales, received ", in[0].dtype,
                      " and ", in[1].dtype);
    }
    check_rank(kCaller, "codes", in[0].shape, 2);
    check_rank(kCaller, "scales", in[1].shape, 1);
    check_one_length(kCaller, "codes", in[0].shape, "scales", in[1].shape);
    return {{.shape = in[2].shape + in[0].shape.slice(1, 2), .dtype = DType::kFloat32}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const auto ids = in[2].data<int64_t>();
    const int64_t dim = in[0].dim(1);
    check_ids("gather_quantized", ids, in[0].dim(0));
    Tensor out = Tensor::uninitialized(in[2].shape() + Shape{dim}, DType::kFloat32);
    if (out.size() == 0) return {out};
    kernels::gather_rows(in[0].data<int8_t>().data(), in[1].data<float>().data(), dim, ids.data(),
                         static_cast<int64_t>(ids.size()), out.mutable_data<float>().data());
    return {out};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }
  bool differentiable() const override { return false; }
};

// Sums values [n, dim...] at ids [n], both inputs, into zeros of `shape`. Rows of one id are summed
// first, in the order of their positions, so that the result does not depend on threads.
class ScatterSum final : public Op {
 public:
  explicit ScatterSum(const Shape& shape) : Op("ScatterSum"), shape_(shape) {
    if (shape.rank() == 0 || !shape.fully_defined()) {
      throw ValueError("scatter_sum: requires a fully defined shape of at least rank 1, received ",
                       shape);
    }
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const Shape &ids = in[0].shape, &values = in[1].shape;
    ops::internal::check_floating("scatter_sum", in[1]);
    check_rank("scatter_sum", "ids", ids, 1);
    check_rank("scatter_sum", "values", values, shape_.rank());
    check_one_length("scatter_sum", "ids", ids, "values", values);
    if (!compatible(values.with(0, kUnknown), shape_.with(0, kUnknown))) {
      throw ValueError("scatter_sum: rows of values must have the shape of rows of ", shape_,
                       ", received values of shape ", values);
    }
    return {{.shape = shape_, .dtype = in[1].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const auto ids = in[0].data<int64_t>();
    check_ids("scatter_sum", ids, shape_[0]);
    const int64_t dim = shape_.slice(1, shape_.rank()).size();
    Tensor out = Tensor::zeros(shape_, in[1].dtype());
    kernels::GroupedIds groups;
    kernels::group_ids(ids, groups);
    const auto count = static_cast<int64_t>(groups.distinct.size());
    Tensor sums = Tensor::uninitialized({count, dim}, in[1].dtype());
    visit_floating(out.dtype(), "scatter_sum", [&]<class T>(const T&) {
      T* from = sums.mutable_data<T>().data();
      T* to = out.mutable_data<T>().data();
      kernels::sum_groups(groups, in[1].data<T>().data(), dim, from);
      for (int64_t g = 0; g < count; ++g) {
        std::copy_n(from + g * dim, dim, to + groups.distinct[g] * dim);
      }
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {Gradient(), ops::gather(args.output_gradients[0].dense(), args.inputs[0])};
  }
  Retain retain() const override { return {.inputs = 1, .outputs = 0}; }

 private:
  const Shape shape_;
};

// ---- Pooling. The inputs are the table or the gradient, the ids (EmbeddingPool only), row_splits,
// and the weights if given.

kernels::Bags bags_of(const int64_t* ids, const Tensor& row_splits, const Tensor* weights) {
  return {.ids = ids,
          .splits = row_splits.data<int64_t>().data(),
          .samples = row_splits.dim(0) - 1,
          .weights = weights == nullptr ? nullptr : weights->data<float>().data()};
}

std::vector<Tensor> with_weights(std::vector<Tensor> inputs, const Tensor& weights) {
  if (weights) inputs.push_back(weights);
  return inputs;
}

// Computes values[p] = gain(p) dy[sample of p] for n positions: the transpose of pooling.
class Unpool final : public Op {
 public:
  Unpool(Combiner combiner, int64_t n) : Op("EmbeddingUnpool"), combiner_(combiner), n_(n) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = in[0].shape.with(0, n_), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const int64_t dim = in[0].dim(1);
    const kernels::Bags bags = bags_of(nullptr, in[1], in.size() > 2 ? &in[2] : nullptr);
    std::vector<float> gains(n_);
    kernels::pooling_gains(bags, combiner_, gains.data());
    Tensor out = Tensor::uninitialized({n_, dim}, in[0].dtype());
    const int64_t per_sample = std::max<int64_t>(1, n_ * dim / std::max<int64_t>(1, bags.samples));
    visit_floating(out.dtype(), "embedding_pool", [&]<class T>(const T&) {
      const T* dy = in[0].data<T>().data();
      T* to = out.mutable_data<T>().data();
      parallel_for(bags.samples, std::max<int64_t>(1, kGrain / per_sample),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t s = begin; s < end; ++s) {
                       const T* row = dy + s * dim;
                       for (int64_t p = bags.splits[s]; p < bags.splits[s + 1]; ++p) {
                         const T gain = static_cast<T>(gains[p]);
                         T* __restrict values = to + p * dim;
                         for (int64_t d = 0; d < dim; ++d) values[d] = gain * row[d];
                       }
                     }
                   });
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    Tensor positions = Tensor::uninitialized({n_}, DType::kInt64);
    const auto numbers = positions.mutable_data<int64_t>();
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<Gradient> out(args.inputs.size());
    out[0] = ops::embedding_pool(args.output_gradients[0].dense(), positions, args.inputs[1],
                                 args.inputs.size() > 2 ? args.inputs[2] : Tensor(), combiner_);
    return out;
  }
  Retain retain() const override { return {.inputs = 6, .outputs = 0}; }

 private:
  const Combiner combiner_;
  const int64_t n_;
};

class EmbeddingPool final : public Op {
 public:
  explicit EmbeddingPool(Combiner combiner) : Op("EmbeddingPool"), combiner_(combiner) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const char* caller = "embedding_pool";
    ops::internal::check_floating(caller, in[0]);
    check_rank(caller, "table", in[0].shape, 2);
    check_rank(caller, "ids", in[1].shape, 1);
    check_rank(caller, "row_splits", in[2].shape, 1);
    if (in[2].dtype != DType::kInt64) {
      throw TypeError(caller, ": row_splits must be int64, received ", in[2].dtype);
    }
    if (in.size() > 3) {
      if (in[3].dtype != DType::kFloat32) {
        throw TypeError(caller, ": weights must be float32, received ", in[3].dtype);
      }
      check_rank(caller, "weights", in[3].shape, 1);
      check_one_length(caller, "ids", in[1].shape, "weights", in[3].shape);
    }
    const int64_t splits = in[2].shape[0];
    return {{.shape = {splits <= 0 ? splits : splits - 1, in[0].shape[1]}, .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor& table = in[0];
    const auto ids = in[1].data<int64_t>();
    check_splits("embedding_pool", in[2].data<int64_t>(), in[1].size());
    check_ids("embedding_pool", ids, table.dim(0));
    const kernels::Bags bags = bags_of(ids.data(), in[2], in.size() > 3 ? &in[3] : nullptr);
    const int64_t dim = table.dim(1);
    Tensor out = Tensor::uninitialized({bags.samples, dim}, table.dtype());
    visit_floating(table.dtype(), "embedding_pool", [&]<class T>(const T&) {
      const auto [rows, step] = table.rows<T>();
      kernels::pooled_gather(rows, dim, bags, combiner_, out.mutable_data<T>().data(), step);
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor weights = args.inputs.size() > 3 ? args.inputs[3] : Tensor();
    const Tensor values =
        dispatch1(Unpool(combiner_, args.inputs[1].size()),
                  with_weights({args.output_gradients[0].dense(), args.inputs[2]}, weights));
    std::vector<Gradient> out(args.inputs.size());
    // A dense gradient would have the size of the table.
    out[0] = IndexedSlices{
        .ids = args.inputs[1], .values = values, .dense_shape = args.input_specs[0].shape};
    return out;
  }
  // The gradient reads the ids, the splits and the weights, but not the table.
  Retain retain() const override { return {.inputs = 14, .outputs = 0}; }

 private:
  const Combiner combiner_;
};

class OneHot final : public Op {
 public:
  OneHot(int64_t depth, DType dtype) : Op("OneHot"), depth_(depth), dtype_(dtype) {
    if (depth < 0) throw ValueError("one_hot: depth must not be negative, received ", depth);
    if (dtype == DType::kString)
      throw TypeError("one_hot: dtype must be numeric or bool, received string");
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = in[0].shape + Shape{depth_}, .dtype = dtype_}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const auto ids = in[0].data<int64_t>();
    check_ids("one_hot", ids, depth_);
    Tensor out = Tensor::zeros(in[0].shape() + Shape{depth_}, dtype_);
    visit_any(dtype_, [&]<class T>(const T&) {
      if constexpr (!std::same_as<T, std::string>) {
        T* row = out.mutable_data<T>().data();
        for (int64_t id : ids) {
          row[id] = T{1};
          row += depth_;
        }
      }
    });
    return {out};
  }
  bool differentiable() const override { return false; }

 private:
  const int64_t depth_;
  const DType dtype_;
};

}  // namespace

namespace ops {

Tensor gather(const Tensor& params, const Tensor& ids) {
  return dispatch1(Gather(), {params, ids64("gather", ids)});
}

Tensor gather_quantized(const Tensor& codes, const Tensor& scales, const Tensor& ids) {
  return dispatch1(GatherQuantized(), {codes, scales, ids64("gather_quantized", ids)});
}

Tensor embedding_pool(const Tensor& table, const Tensor& ids, const Tensor& row_splits,
                      const Tensor& weights, Combiner combiner) {
  return dispatch1(EmbeddingPool(combiner),
                   with_weights({table, ids64("embedding_pool", ids), row_splits}, weights));
}

Tensor scatter_sum(const Tensor& ids, const Tensor& values, const Shape& shape) {
  return dispatch1(ScatterSum(shape), {ids64("scatter_sum", ids), values});
}

Tensor one_hot(const Tensor& ids, int64_t depth, DType dtype) {
  return dispatch1(OneHot(depth, dtype), {ids64("one_hot", ids)});
}

}  // namespace ops
}  // namespace keel
