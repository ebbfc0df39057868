#include <numeric>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/kernels/gemm/gemm_bf16.h>

namespace keel {
namespace {

Tensor matrix_transposed(const Tensor& x) {
  std::vector<int> axes(x.rank());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes.end()[-1], axes.end()[-2]);
  return ops::transpose(x, axes);
}

// Multiplies the matrices in the last two axes pairwise. If b is a single matrix, all matrices of a
// are stacked and multiplied by it in one product.
class MatMul final : public Op {
 public:
  MatMul(bool transpose_a, bool transpose_b)
      : Op("MatMul"),
        transpose_a_(transpose_a),
        transpose_b_(transpose_b),
        operands_(AutocastScope::operands()) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("matmul", in[0]);
    ops::internal::check_same_dtype("matmul", in[0], in[1]);
    return {{.shape = product_shape(in[0].shape, in[1].shape), .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor a = ops::internal::product_operand(in[0], operands_);
    const Tensor b = ops::internal::product_operand(in[1], operands_);
    Tensor c = Tensor::uninitialized(product_shape(a.shape(), b.shape()), a.dtype());
    int64_t m = c.dim(-2), n = c.dim(-1), k = a.dim(transpose_a_ ? -2 : -1);
    int64_t count = c.shape().slice(0, c.rank() - 2).size();
    if (folds(a.rank(), b.rank())) m *= std::exchange(count, 1);
    const int64_t b_step = b.rank() == 2 ? 0 : k * n;
    const MatmulPrecision precision = ops::internal::precision_of_step();
    visit_floating(a.dtype(), "matmul", [&]<class T>(const T&) {
      const T *x = a.data<T>().data(), *y = b.data<T>().data();
      T* z = c.mutable_data<T>().data();
      const auto multiply = [&](int64_t i) {
        const T *of_a = x + i * m * k, *of_b = y + i * b_step;
        T* of_c = z + i * m * n;
        if constexpr (std::same_as<T, float>) {
          if (operands_ == ProductOperands::kBFloat16) {
            return kernels::gemm_bf16(of_a, of_b, of_c, m, n, k, transpose_a_, transpose_b_, {},
                                      matmul_precision());
          }
          kernels::gemm(of_a, of_b, of_c, m, n, k, transpose_a_, transpose_b_, {}, precision);
        } else {
          kernels::gemm(of_a, of_b, of_c, m, n, k, transpose_a_, transpose_b_);
        }
      };
      if (count == 1) {
        multiply(0);
      } else {
        const int64_t work = std::max<int64_t>(1, m * n * k);
        parallel_for(count, std::max<int64_t>(1, kBlockWork / work), [&](int64_t from, int64_t to) {
          for (int64_t i = from; i < to; ++i) multiply(i);
        });
      }
    });
    return {c};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const AutocastScope products(operands_);
    const Tensor &a = args.inputs[0], &b = args.inputs[1];
    const Tensor dc = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) out[0] = gradient_a(b, dc);
    if (args.wants(1)) out[1] = gradient_b(a, b.rank(), dc);
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }

 private:
  static constexpr int64_t kBlockWork = 1 << 20;  // multiplications per parallel block

  // Returns true if the leading axes of a can be merged into its rows, which needs an a that is not
  // transposed and a single matrix b.
  bool folds(int rank_a, int rank_b) const { return rank_a > 2 && rank_b == 2 && !transpose_a_; }

  Shape product_shape(const Shape& a, const Shape& b) const {
    const bool ranks = a.rank() >= 2 && (b.rank() == 2 || b.rank() == a.rank());
    if (!ranks) throw_incompatible(a, b);
    const int64_t inner_a = a[transpose_a_ ? -2 : -1], inner_b = b[transpose_b_ ? -1 : -2];
    const bool inner = inner_a == inner_b || inner_a == kUnknown || inner_b == kUnknown;
    Shape leading = a.slice(0, a.rank() - 2);
    if (b.rank() > 2) {
      const Shape other = b.slice(0, b.rank() - 2);
      if (!compatible(leading, other)) throw_incompatible(a, b);
      for (int i = 0; i < leading.rank(); ++i) {
        if (leading[i] == kUnknown) leading = leading.with(i, other[i]);
      }
    }
    if (!inner) throw_incompatible(a, b);
    return leading + Shape{a[transpose_a_ ? -1 : -2], b[transpose_b_ ? -2 : -1]};
  }
  [[noreturn]] void throw_incompatible(const Shape& a, const Shape& b) const {
    throw ValueError("matmul: incompatible shapes ", a, transpose_a_ ? " transposed" : "", " and ",
                     b, transpose_b_ ? " transposed" : "",
                     "; the last dimension of the first must be the second last of the other");
  }

  Tensor gradient_a(const Tensor& b, const Tensor& dc) const {
    if (!transpose_a_) return ops::matmul(dc, b, false, !transpose_b_);
    if (b.rank() == dc.rank()) return ops::matmul(b, dc, transpose_b_, true);
    return matrix_transposed(ops::matmul(dc, b, false, !transpose_b_));
  }

  Tensor gradient_b(const Tensor& a, int rank_b, const Tensor& dc) const {
    if (folds(a.rank(), rank_b)) {
      const Tensor x = ops::reshape(a, {a.shape().drop_last().size(), a.dim(-1)});
      const Tensor d = ops::reshape(dc, {dc.shape().drop_last().size(), dc.dim(-1)});
      return transpose_b_ ? ops::matmul(d, x, true, false) : ops::matmul(x, d, true, false);
    }
    const Tensor db = transpose_b_ ? ops::matmul(dc, a, true, transpose_a_)
                                   : ops::matmul(a, dc, !transpose_a_, false);
    return ops::sum_to(db, db.shape().slice(db.rank() - rank_b, db.rank()));
  }

  const bool transpose_a_, transpose_b_;
  const ProductOperands operands_;
};

}  // namespace

Tensor ops::matmul(const Tensor& a, const Tensor& b, bool transpose_a, bool transpose_b) {
  return dispatch1(MatMul(transpose_a, transpose_b), {a, b});
}

}  // namespace keel
