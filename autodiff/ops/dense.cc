#include <algorithm>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/kernels/gemm/dense_gradient.h>
#include <keel/framework/kernels/gemm/gemm_bf16.h>

namespace keel {
namespace {

constexpr int64_t kRowsPerSum = 64;  // rows added in float; sums of more rows are added in double

// Takes y = relu(z) and dy, and returns dz and, if requested, its sum over all axes but the last.
// One pass serves both, because the tensors are read from memory and the pass is bound by it.
class ReluGradientSum final : public Op {
 public:
  explicit ReluGradientSum(bool sums) : Op("ReluGradientSum"), sums_(sums) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    std::vector<TensorSpec> out = {in[0]};
    if (sums_) out.push_back({.shape = {in[0].shape[-1]}, .dtype = in[0].dtype});
    return out;
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& shape = in[0].shape();
    const int64_t n = shape[-1];
    const int64_t rows = shape.drop_last().size();
    Tensor dz = Tensor::uninitialized(shape, in[0].dtype());
    Tensor sums = Tensor::uninitialized({blocks_of(rows), sums_ ? n : 0}, in[0].dtype());
    visit_floating(dz.dtype(), "dense", [&]<class T>(const T&) {
      const T *y = in[0].data<T>().data(), *dy = in[1].data<T>().data();
      T *to = dz.mutable_data<T>().data(), *sum = sums.mutable_data<T>().data();
      const int64_t grain = ops::internal::kGrain / (kRowsPerSum * std::max<int64_t>(n, 1));
      parallel_for(blocks_of(rows), std::max<int64_t>(1, grain), [&](int64_t from, int64_t end) {
        for (int64_t block = from; block < end; ++block) {
          const int64_t row = block * kRowsPerSum;
          const int64_t at = row * n;
          mask(y + at, dy + at, to + at, std::min(kRowsPerSum, rows - row), n,
               sums_ ? sum + block * n : nullptr);
        }
      });
    });
    if (!sums_) return {dz};
    return {dz, total(sums)};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor& y = args.inputs[0];
    Gradient g = args.output_gradients[0];
    if (sums_ && args.output_gradients[1]) {
      g.add(ops::broadcast_to(args.output_gradients[1].dense(), y.shape()));
    }
    if (!g) return {{}, {}};
    return {{}, dispatch1(ReluGradientSum(false), {y, g.dense()})};
  }
  Retain retain() const override { return {.inputs = 1, .outputs = 0}; }

 private:
  static int64_t blocks_of(int64_t rows) { return (rows + kRowsPerSum - 1) / kRowsPerSum; }

  template <class T>
  static void mask(const T* y, const T* dy, T* __restrict dz, int64_t rows, int64_t n,
                   T* __restrict sums) {
    if (sums == nullptr) {
      for (int64_t i = 0; i < rows * n; ++i) dz[i] = y[i] > 0 ? dy[i] : T{0};
      return;
    }
    std::fill_n(sums, n, T{0});
    for (int64_t r = 0; r < rows; ++r, y += n, dy += n, dz += n) {
      for (int64_t j = 0; j < n; ++j) {
        const T g = y[j] > 0 ? dy[j] : T{0};
        dz[j] = g;
        sums[j] += g;
      }
    }
  }

  static Tensor total(const Tensor& sums) {
    const int64_t n = sums.dim(1);
    Tensor out = Tensor::uninitialized({n}, sums.dtype());
    visit_floating(out.dtype(), "dense", [&]<class T>(const T&) {
      Tensor wide = Tensor::zeros({n}, DType::kFloat64);
      double* __restrict all = wide.mutable_data<double>().data();
      const T* part = sums.data<T>().data();
      for (int64_t block = 0; block < sums.dim(0); ++block, part += n) {
        for (int64_t j = 0; j < n; ++j) all[j] += static_cast<double>(part[j]);
      }
      std::transform(all, all + n, out.mutable_data<T>().data(),
                     [](double x) { return static_cast<T>(x); });
    });
    return out;
  }

  const bool sums_;
};

Tensor as_rows(const Tensor& x) {
  if (x.rank() == 2) return x;
  return ops::reshape(x, {x.shape().drop_last().size(), x.dim(-1)});
}

// Takes x, kernel, dy and, for a relu, y. Returns the requested gradients of x, kernel and bias.
class DenseGradient final : public Op {
 public:
  struct Wanted {
    bool x, kernel, bias;
  };
  explicit DenseGradient(Wanted wanted) : Op("DenseGradient"), wanted_(wanted) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    std::vector<TensorSpec> out;
    if (wanted_.x) out.push_back(in[0]);
    if (wanted_.kernel) out.push_back(in[1]);
    if (wanted_.bias) out.push_back({.shape = {in[1].shape[1]}, .dtype = in[1].dtype});
    return out;
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    std::vector<Tensor> out;
    for (const TensorSpec& spec : infer(specs_of(in))) {
      out.push_back(Tensor::uninitialized(spec.shape, spec.dtype));
    }
    visit_floating(in[0].dtype(), "dense", [&]<class T>(const T&) {
      size_t next = 0;
      const auto result = [&](bool wanted) {
        return wanted ? out[next++].mutable_data<T>().data() : nullptr;
      };
      T* const dx = result(wanted_.x);
      T* const dw = result(wanted_.kernel);
      T* const db = result(wanted_.bias);
      const Sizes sizes = {
          .rows = in[0].shape().drop_last().size(), .in = in[1].dim(0), .out = in[1].dim(1)};
      const T *x = in[0].data<T>().data(), *w = in[1].data<T>().data();
      const T *dy = in[2].data<T>().data(), *y = in.size() == 4 ? in[3].data<T>().data() : nullptr;
      if constexpr (std::same_as<T, float>) {
        kernels::dense_gradient({.rows = sizes.rows,
                                 .in = sizes.in,
                                 .out = sizes.out,
                                 .x = x,
                                 .w = w,
                                 .y = y,
                                 .dy = dy,
                                 .dx = dx,
                                 .dw = dw,
                                 .db = db,
                                 .precision = ops::internal::precision_of_step()});
      } else {
        separate_gradients(sizes, x, w, y, dy, dx, dw, db);
      }
    });
    return out;
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor &x = args.inputs[0], &kernel = args.inputs[1], &dy = args.inputs[2];
    const bool relu = args.inputs.size() == 4;
    const auto masked = [&](const Tensor& g) {
      return relu ? dispatch1(ReluGradientSum(false), {args.inputs[3], g}) : g;
    };
    const Tensor dz = masked(dy);
    size_t next = 0;
    const auto given = [&](bool wanted) {
      return wanted ? args.output_gradients[next++] : Gradient();
    };
    const Gradient of_dx = given(wanted_.x);
    const Gradient of_dw = given(wanted_.kernel);
    const Gradient of_db = given(wanted_.bias);
    std::vector<Gradient> out(args.inputs.size());
    Gradient of_dz;
    if (of_dx) {
      const Tensor g = of_dx.dense();
      of_dz.add(ops::matmul(g, kernel));
      out[1] = ops::matmul(as_rows(g), as_rows(dz), true, false);
    }
    if (of_dw) {
      const Tensor g = of_dw.dense();
      of_dz.add(ops::matmul(x, g));
      out[0] = ops::matmul(dz, g, false, true);
    }
    if (of_db) of_dz.add(ops::broadcast_to(of_db.dense(), dy.shape()));
    if (of_dz) out[2] = masked(of_dz.dense());
    return out;
  }

 private:
  struct Sizes {
    int64_t rows, in, out;
  };

  static std::vector<TensorSpec> specs_of(std::span<const Tensor> tensors) {
    std::vector<TensorSpec> out;
    for (const Tensor& t : tensors) out.push_back({.shape = t.shape(), .dtype = t.dtype()});
    return out;
  }

  // Computes the gradients one after the other in double, which only gradient checks use.
  template <class T>
  static void separate_gradients(const Sizes& s, const T* x, const T* w, const T* y, const T* dy,
                                 T* dx, T* dw, T* db) {
    std::vector<T> dz(dy, dy + s.rows * s.out);
    if (db != nullptr) std::fill_n(db, s.out, T{0});
    for (int64_t i = 0; i < s.rows * s.out; ++i) {
      if (y != nullptr && !(y[i] > 0)) dz[i] = 0;
      if (db != nullptr) db[i % s.out] += dz[i];
    }
    if (dx != nullptr) kernels::gemm(dz.data(), w, dx, s.rows, s.in, s.out, false, true);
    if (dw != nullptr) kernels::gemm(x, dz.data(), dw, s.in, s.out, s.rows, true, false);
  }

  const Wanted wanted_;
};

// The inputs are x, kernel and, optionally, bias.
class Dense final : public Op {
 public:
  explicit Dense(bool relu) : Op("Dense"), relu_(relu), operands_(AutocastScope::operands()) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("dense", in[0]);
    for (const TensorSpec& other : in.subspan(1)) {
      ops::internal::check_same_dtype("dense", in[0], other);
    }
    const Shape &x = in[0].shape, &kernel = in[1].shape;
    const bool fits = x.rank() >= 2 && kernel.rank() == 2 &&
                      (x[-1] == kernel[0] || x[-1] == kUnknown || kernel[0] == kUnknown);
    if (!fits)
      throw ValueError(
          "dense: the last dimension of the input must be the first of the kernel of shape ",
          kernel, ", received shape ", x);
    if (in.size() == 3 && in[2].shape != Shape{kernel[1]}) {
      throw ValueError("dense: the bias must have the last dimension of the kernel of shape ",
                       kernel, ", received shape ", in[2].shape);
    }
    return {{.shape = x.drop_last() + Shape{kernel[1]}, .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const int64_t m = in[0].shape().drop_last().size();
    const int64_t k = in[1].dim(0), n = in[1].dim(1);
    Tensor y = Tensor::uninitialized(in[0].shape().drop_last() + Shape{n}, in[0].dtype());
    const Tensor of_x = ops::internal::product_operand(in[0], operands_);
    const Tensor of_kernel = ops::internal::product_operand(in[1], operands_);
    visit_floating(y.dtype(), "dense", [&]<class T>(const T&) {
      const T *x = of_x.data<T>().data(), *kernel = of_kernel.data<T>().data();
      const T* bias = in.size() == 3 ? in[2].data<T>().data() : nullptr;
      T* to = y.mutable_data<T>().data();
      if constexpr (std::same_as<T, float>) {
        const kernels::GemmEpilogue epilogue = {.bias = bias, .relu = relu_};
        if (operands_ == ProductOperands::kBFloat16) {
          kernels::gemm_bf16(x, kernel, to, m, n, k, false, false, epilogue, matmul_precision());
        } else {
          kernels::gemm(x, kernel, to, m, n, k, false, false, epilogue,
                        ops::internal::precision_of_step());
        }
      } else {
        kernels::gemm(x, kernel, to, m, n, k, false, false);
        for (int64_t i = 0; i < m * n; ++i) {
          if (bias != nullptr) to[i] += bias[i % n];
          if (relu_ && to[i] < 0) to[i] = 0;
        }
      }
    });
    return {y};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const AutocastScope products(operands_);
    const Tensor &x = args.inputs[0], &kernel = args.inputs[1];
    const bool has_bias = args.input_specs.size() == 3;
    // The fused gradient does not round its operands.
    if (operands_ == ProductOperands::kUnchanged) return fused_gradients(args);
    Tensor dz = args.output_gradients[0].dense();
    std::vector<Gradient> out(args.input_specs.size());
    if (relu_) {
      const bool sums = has_bias && args.wants(2);
      const std::vector<Tensor> both =
          dispatch(std::make_shared<const ReluGradientSum>(sums), {args.outputs[0], dz});
      dz = both[0];
      if (sums) out[2] = both[1];
    } else if (has_bias && args.wants(2)) {
      out[2] = ops::sum_to(dz, args.input_specs[2].shape);
    }
    if (args.wants(0)) out[0] = ops::matmul(dz, kernel, false, true);
    if (args.wants(1)) out[1] = ops::matmul(as_rows(x), as_rows(dz), true, false);
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = relu_ ? 1U : 0U}; }

 private:
  // Computes all gradients in one op, which masks dy with the relu and sums the bias gradient while
  // it computes the products.
  std::vector<Gradient> fused_gradients(const VjpArgs& args) const {
    const DenseGradient::Wanted wanted = {.x = args.wants(0),
                                          .kernel = args.wants(1),
                                          .bias = args.input_specs.size() == 3 && args.wants(2)};
    std::vector<Tensor> inputs = {args.inputs[0], args.inputs[1], args.output_gradients[0].dense()};
    if (relu_) inputs.push_back(args.outputs[0]);
    const std::vector<Tensor> given =
        dispatch(std::make_shared<const DenseGradient>(wanted), std::move(inputs));
    std::vector<Gradient> out(args.input_specs.size());
    size_t next = 0;
    if (wanted.x) out[0] = given[next++];
    if (wanted.kernel) out[1] = given[next++];
    if (wanted.bias) out[2] = given[next];
    return out;
  }

  const bool relu_;
  const ProductOperands operands_;
};

}  // namespace

Tensor ops::dense(const Tensor& x, const Tensor& kernel, const Tensor& bias, bool relu) {
  std::vector<Tensor> inputs = {x, kernel};
  if (bias) inputs.push_back(bias);
  return dispatch1(Dense(relu), std::move(inputs));
}

}  // namespace keel
