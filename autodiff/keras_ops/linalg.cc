#include <keel/autodiff/keras_ops/linalg.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numeric>

#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/kernels/linalg/linalg.h>

namespace keel::keras_ops {
namespace {

using internal::FunctionOp;

Tensor transposed(const Tensor& x) { return swapaxes(x, -1, -2); }

Tensor checked(const char* name, const Tensor& x, bool square) {
  if (x.rank() < 2 || (square && x.dim(-1) != x.dim(-2))) {
    throw ValueError(name, ": requires ", square ? "square " : "", "matrices, received shape ",
                     x.shape());
  }
  return internal::floating(x);
}

Shape batch_of(const Tensor& x) { return x.shape().slice(0, x.rank() - 2); }

// The matrices of one element of the batch that a kernel reads, and the results that it writes.
struct Buffers {
  std::vector<const double*> in;
  std::vector<double*> out;
};

// Runs a kernel for each matrix of the batch that all inputs share. `shapes` are those of the
// results for one matrix. The kernel returns false if the matrix is not allowed.
FunctionOp batched(const char* name, const Tensor& x, const std::vector<Shape>& shapes,
                   const char* requirement, std::function<bool(const Buffers&)> kernel) {
  FunctionOp op = {.name = name};
  const Shape batch = batch_of(x);
  for (const Shape& shape : shapes) {
    op.outputs.push_back({.shape = batch + shape, .dtype = x.dtype()});
  }
  op.compute = [name, batch, shapes, requirement, kernel](std::span<const Tensor> in) {
    std::vector<std::vector<double>> from, to;
    for (const Tensor& t : in) from.push_back(internal::doubles_of(t));
    for (const Shape& shape : shapes) to.emplace_back((batch + shape).size());
    const int64_t count = batch.size();
    for (int64_t b = 0; b < count; ++b) {
      Buffers buffers;
      for (const auto& f : from) buffers.in.push_back(f.data() + f.size() / count * b);
      for (auto& t : to) buffers.out.push_back(t.data() + t.size() / count * b);
      if (!kernel(buffers)) throw ValueError(name, ": requires ", requirement, " matrices");
    }
    std::vector<Tensor> out;
    for (size_t i = 0; i < to.size(); ++i) {
      out.push_back(Tensor::from(to[i], batch + shapes[i]).cast(in[0].dtype()));
    }
    return out;
  };
  return op;
}

Tensor or_zeros(const Gradient& gradient, const TensorSpec& spec) {
  return gradient ? gradient.dense() : Tensor::zeros(spec.shape, spec.dtype);
}

// Adds two axes of dimension 1, so that a number of each matrix multiplies the matrix.
Tensor for_matrices(const Tensor& x) { return ops::expand_dims(ops::expand_dims(x, -1), -1); }

// Halves the diagonal of the lower triangle; the rest is 0.
Tensor half_lower(const Tensor& x) { return tril(x, -1) + 0.5 * (tril(x) - tril(x, -1)); }

// The gradient of L in x = L L^T (Murray 2016): L^-T P(L^T dL) L^-1, made symmetric.
std::vector<Gradient> cholesky_gradient(const VjpArgs& args) {
  const Tensor& lower = args.outputs[0];
  const Tensor middle = half_lower(ops::matmul(lower, args.output_gradients[0].dense(), true));
  const Tensor inverse = inv(lower);
  const Tensor outer = ops::matmul(ops::matmul(inverse, middle, true), inverse);
  return {0.5 * (outer + transposed(outer))};
}

// The gradient of q and r (Walter and Lehmann 2010). A wide x is [x1 x2] with square x1 = q r1, and
// r2 = q^T x2.
std::vector<Gradient> qr_gradient(const VjpArgs& args) {
  const Tensor &q = args.outputs[0], &x = args.inputs[0];
  const int64_t k = q.dim(-1), wider = x.dim(-1) - k;
  if (wider < 0) {
    throw NotImplementedError(
        "qr: the gradient of mode 'complete' requires at least as many columns as rows; use mode "
        "'reduced'");
  }
  Tensor dq = or_zeros(args.output_gradients[0], args.output_specs[0]);
  const Tensor all = or_zeros(args.output_gradients[1], args.output_specs[1]);
  const Tensor r = ops::slice(args.outputs[1], -1, 0, k), dr = ops::slice(all, -1, 0, k);
  Tensor dx2;
  if (wider > 0) {
    const Tensor dr2 = ops::slice(all, -1, k, wider);
    dq = dq + ops::matmul(ops::slice(x, -1, k, wider), dr2, false, true);
    dx2 = ops::matmul(q, dr2);
  }
  const Tensor m = ops::matmul(r, dr, false, true) - ops::matmul(dq, q, true);
  const Tensor symmetric = tril(m) + transposed(tril(m, -1));
  const Tensor dx1 = ops::matmul(dq + ops::matmul(q, symmetric), inv(r), false, true);
  return {dx2 ? ops::concat({dx1, dx2}, -1) : dx1};
}

// The gradient of w and V in x = V diag(w) V^T: V (diag(dw) + (V^T dV) / (w_j - w_i)) V^T.
std::vector<Gradient> eigh_gradient(const VjpArgs& args) {
  const Tensor &w = args.outputs[0], &v = args.outputs[1];
  const Tensor dw = or_zeros(args.output_gradients[0], args.output_specs[0]);
  const Tensor dv = or_zeros(args.output_gradients[1], args.output_specs[1]);
  const Tensor gaps = ops::expand_dims(w, -2) - ops::expand_dims(w, -1);
  const Tensor turned = ops::divide_no_nan(ops::matmul(v, dv, true), gaps);
  const Tensor unit = eye(w.dim(-1), {}, 0, w.dtype());
  const Tensor middle = turned + ops::expand_dims(dw, -1) * unit;
  const Tensor full = ops::matmul(ops::matmul(v, middle), v, false, true);
  return {0.5 * (full + transposed(full))};
}

// The gradient of real w and V in x = V diag(w) V^-1 with columns of length 1 (Boeddeker et al.
// 2017): V^-T (diag(dw) + (V^T dV - V^T V diag(V^T dV)) / (w_j - w_i)) V^T. The imaginary parts are
// 0 next to x, too.
std::vector<Gradient> eig_gradient(const VjpArgs& args) {
  const Tensor &w = args.outputs[0], &v = args.outputs[2];
  const std::vector<double> imaginary = internal::doubles_of(args.outputs[1]);
  if (std::ranges::any_of(imaginary, [](double x) { return x != 0; })) {
    throw NotImplementedError(
        "eig: the gradient requires real eigenvalues, because complex tensors do not exist in "
        "Keel; use eigh for symmetric matrices");
  }
  const Tensor dw = or_zeros(args.output_gradients[0], args.output_specs[0]);
  const Tensor dv = or_zeros(args.output_gradients[2], args.output_specs[2]);
  const Tensor unit = eye(w.dim(-1), {}, 0, w.dtype());
  const Tensor turned = ops::matmul(v, dv, true);
  const Tensor own = ops::sum(turned * unit, {-2}, true);  // changes of the lengths
  const Tensor gaps = ops::expand_dims(w, -2) - ops::expand_dims(w, -1);
  const Tensor off = ops::divide_no_nan(turned - ops::matmul(v, v, true) * own, gaps);
  const Tensor middle = off + ops::expand_dims(dw, -1) * unit;
  return {ops::matmul(inv(transposed(v)), ops::matmul(middle, v, false, true))};
}

// The gradient of the pseudoinverse p of x with a constant rank (Golub and Pereyra 1973).
std::vector<Gradient> pinv_gradient(const VjpArgs& args) {
  const Tensor &x = args.inputs[0], &p = args.outputs[0];
  const Tensor dp = args.output_gradients[0].dense();
  const Tensor of_rows = ops::matmul(p, p, false, true), of_columns = ops::matmul(p, p, true);
  const Tensor dp_of_rows = ops::matmul(dp, of_rows, true);            // dp^T p p^T
  const Tensor columns_dp = ops::matmul(of_columns, dp, false, true);  // p^T p dp^T
  const Tensor inner = ops::matmul(p, ops::matmul(dp, p, false, true), true);
  const Tensor left = dp_of_rows - ops::matmul(x, ops::matmul(p, dp_of_rows));
  const Tensor right = columns_dp - ops::matmul(ops::matmul(columns_dp, p), x);
  return {left + right - inner};
}

// The gradient of u, s and vh in x = u diag(s) vh (Townsend 2016).
std::vector<Gradient> svd_gradient(const VjpArgs& args) {
  const Tensor& s = args.outputs[1];
  const int64_t k = s.dim(-1);
  const Tensor u = ops::slice(args.outputs[0], -1, 0, k);
  const Tensor vh = ops::slice(args.outputs[2], -2, 0, k);
  const Tensor ds = or_zeros(args.output_gradients[1], args.output_specs[1]);
  const Gradient &du = args.output_gradients[0], &dvh = args.output_gradients[2];
  if (!du && !dvh) return {ops::matmul(u * ops::expand_dims(ds, -2), vh)};
  if (args.outputs[0].dim(-1) != k || args.outputs[2].dim(-2) != k) {
    throw NotImplementedError(
        "svd: with full_matrices, the gradient of u and vh requires square matrices");
  }
  const Tensor squares = ops::square(s);
  const Tensor gaps = ops::expand_dims(squares, -2) - ops::expand_dims(squares, -1);
  const Tensor unit = eye(k, {}, 0, s.dtype());
  Tensor middle = ops::expand_dims(ds, -2) * unit;
  Tensor rest;  // the parts of the gradient outside of the spaces of u and v
  const auto add = [&](const Tensor& part) { rest = rest ? rest + part : part; };
  const Tensor inverse = reciprocal(s);
  if (du) {
    const Tensor inside = ops::matmul(u, du.dense(), true);
    middle =
        middle + ops::divide_no_nan(inside - transposed(inside), gaps) * ops::expand_dims(s, -2);
    add(ops::matmul((du.dense() - ops::matmul(u, inside)) * ops::expand_dims(inverse, -2), vh));
  }
  if (dvh) {
    const Tensor inside = ops::matmul(vh, dvh.dense(), false, true);
    middle =
        middle + ops::expand_dims(s, -1) * ops::divide_no_nan(inside - transposed(inside), gaps);
    const Tensor outside = dvh.dense() - ops::matmul(inside, vh, true);
    add(ops::matmul(u * ops::expand_dims(inverse, -2), outside));
  }
  return {ops::matmul(ops::matmul(u, middle), vh) + rest};
}

// Undoes the exchanges of rows that lu_factor() returns. k is their number for one matrix.
Tensor exchanged_back(const Tensor& x, const Tensor& exchanges, int64_t k) {
  const std::vector<int64_t> all = internal::integers_of("lu_factor", exchanges);
  const int64_t m = x.dim(-2), n = x.dim(-1), rows = batch_of(x).size() * m;
  std::vector<int64_t> from(rows), to(rows);
  std::iota(from.begin(), from.end(), 0);
  for (int64_t b = 0; b * m < rows; ++b) {
    for (int64_t i = 0; i < k; ++i) std::swap(from[b * m + i], from[b * m + all[b * k + i]]);
  }
  for (int64_t i = 0; i < rows; ++i) to[from[i]] = i;
  const Tensor moved = ops::gather(ops::reshape(x, {rows, n}), Tensor::from(to, {rows}));
  return ops::reshape(moved, x.shape());
}

// The gradient of the factors L and U of P x = L U, where P are the exchanges (de Hoog, Anderssen
// and Lukas 2011). The blocks of k = min(m, n) rows and columns give
//   L^-T (tril(L^T dL - dU2 U2^T, -1) + triu(dU U^T - L2^T dL2)) U^-T
// of which a wide x has U2, the columns after the block, and a tall x has L2, the rows after it.
// The gradients of these parts of x are L^-T dU2 and dL2 U^-T.
std::vector<Gradient> lu_gradient(const VjpArgs& args) {
  if (!args.output_gradients[0]) return {Gradient()};
  const Tensor &lu = args.outputs[0], dlu = args.output_gradients[0].dense();
  const int64_t m = lu.dim(-2), n = lu.dim(-1), k = std::min(m, n);
  if (lu.size() == 0) return {dlu};
  const auto block = [k](const Tensor& x) { return ops::slice(ops::slice(x, -2, 0, k), -1, 0, k); };
  const Tensor lower = tril(block(lu), -1) + eye(k, {}, 0, lu.dtype()), upper = triu(block(lu));
  const Tensor dlower = tril(block(dlu), -1), dupper = triu(block(dlu));
  Tensor below = ops::matmul(lower, dlower, true);
  Tensor above = ops::matmul(dupper, upper, false, true);
  const Tensor unit_upper = transposed(lower);
  // Return L^-T x and x U^-T.
  const auto after_lower = [&](const Tensor& x) { return solve(unit_upper, x); };
  const auto after_upper = [&](const Tensor& x) { return transposed(solve(upper, transposed(x))); };
  const auto rest = [k](const Tensor& x, int axis) {
    return ops::slice(x, axis, k, x.dim(axis) - k);
  };
  if (n > k) below = below - ops::matmul(rest(dlu, -1), rest(lu, -1), false, true);
  if (m > k) above = above - ops::matmul(rest(lu, -2), rest(dlu, -2), true);
  Tensor dx = after_upper(after_lower(tril(below, -1) + triu(above)));
  if (n > k) dx = ops::concat({dx, after_lower(rest(dlu, -1))}, -1);
  if (m > k) dx = ops::concat({dx, after_upper(rest(dlu, -2))}, -2);
  return {exchanged_back(dx, args.outputs[1], k)};
}

// ---- Norms.

Tensor vector_norm(const Tensor& x, double order, const Axes& axis, bool keepdims) {
  const Tensor size = ops::abs(x);
  if (std::isinf(order)) return order > 0 ? max(size, axis, keepdims) : min(size, axis, keepdims);
  if (order == 0) {
    return ops::cast(sum(ops::cast(ops::cast(x, DType::kBool), DType::kInt32), axis, keepdims),
                     x.dtype());
  }
  if (order == 1) return sum(size, axis, keepdims);
  if (order == 2) return ops::sqrt(sum(ops::square(x), axis, keepdims));
  return power(sum(power(size, order), axis, keepdims), 1 / order);
}

// The norms of the matrices in the last two axes.
Tensor matrix_norm(const Tensor& x, const NormOrder& ord) {
  if (ord.name() == "nuc") return sum(singular_values(x), -1);
  if (ord.name() == "fro" || (!ord.number() && ord.name().empty())) {
    return ops::sqrt(sum(ops::square(x), {-2, -1}));
  }
  const double order = ord.number().value_or(0);
  const int summed = std::abs(order) == 1 ? -2 : -1;
  if (std::abs(order) == 1 || std::isinf(order)) {
    const Tensor sums = sum(ops::abs(x), summed);
    return order > 0 ? max(sums, -1) : min(sums, -1);
  }
  if (std::abs(order) == 2) {
    const Tensor values = singular_values(x);
    return order > 0 ? max(values, -1) : min(values, -1);
  }
  throw ValueError(
      "norm: unknown order of a matrix norm; use fro, nuc, 1, -1, 2, -2 or an infinity");
}

}  // namespace

// ---- Factorizations.

Tensor cholesky(const Tensor& x, bool upper) {
  const Tensor in = checked("cholesky", x, true);
  const int64_t n = in.dim(-1);
  FunctionOp op = batched("cholesky", in, {{n, n}}, "positive definite", [n](const Buffers& b) {
    return kernels::cholesky(b.in[0], n, b.out[0]);
  });
  op.vjp = cholesky_gradient;
  const Tensor lower = internal::call1(std::move(op), {in});
  return upper ? transposed(lower) : lower;
}

Tensor cholesky_inverse(const Tensor& x, bool upper) {
  const Tensor in = checked("cholesky_inverse", x, true);
  // Keras reads one triangle, but passes on the gradient of the whole matrix.
  const Tensor unread = upper ? tril(in, -1) : triu(in, 1);
  const Tensor factor = inv(in - ops::stop_gradient(unread));
  return upper ? ops::matmul(factor, factor, false, true) : ops::matmul(factor, factor, true);
}

std::pair<Tensor, Tensor> qr(const Tensor& x, const std::string& mode) {
  if (mode != "reduced" && mode != "complete") {
    throw ValueError("qr: mode must be reduced or complete, received '", mode, "'");
  }
  const Tensor in = checked("qr", x, false);
  const int64_t m = in.dim(-2), n = in.dim(-1);
  const bool complete = mode == "complete";
  const int64_t k = complete ? m : std::min(m, n);
  FunctionOp op = batched("qr", in, {{m, k}, {k, n}}, "finite", [=](const Buffers& b) {
    kernels::qr(b.in[0], m, n, complete, b.out[0], b.out[1]);
    return true;
  });
  op.vjp = qr_gradient;
  const std::vector<Tensor> out = internal::call(std::move(op), {in});
  return {out[0], out[1]};
}

Svd svd(const Tensor& x, bool full_matrices) {
  const Tensor in = checked("svd", x, false);
  const int64_t m = in.dim(-2), n = in.dim(-1), k = std::min(m, n);
  const int64_t p = full_matrices ? m : k, q = full_matrices ? n : k;
  FunctionOp op = batched("svd", in, {{m, p}, {k}, {q, n}}, "finite", [=](const Buffers& b) {
    kernels::svd(b.in[0], m, n, full_matrices, b.out[0], b.out[1], b.out[2]);
    return true;
  });
  op.vjp = svd_gradient;
  const std::vector<Tensor> out = internal::call(std::move(op), {in});
  return {out[0], out[1], out[2]};
}

Tensor singular_values(const Tensor& x) { return svd(x, false).s; }

std::pair<Tensor, Tensor> eigh(const Tensor& x) {
  const Tensor in = checked("eigh", x, true);
  const int64_t n = in.dim(-1);
  FunctionOp op = batched("eigh", in, {{n}, {n, n}}, "finite", [n](const Buffers& b) {
    kernels::eigh(b.in[0], n, b.out[0], b.out[1]);
    return true;
  });
  op.vjp = eigh_gradient;
  const std::vector<Tensor> out = internal::call(std::move(op), {in});
  return {out[0], out[1]};
}

std::pair<Complex, Complex> eig(const Tensor& x) {
  const Tensor in = checked("eig", x, true);
  const int64_t n = in.dim(-1);
  FunctionOp op = batched("eig", in, {{n}, {n}, {n, n}, {n, n}}, "finite", [n](const Buffers& b) {
    std::vector<std::complex<double>> values(n), vectors(n * n);
    if (!kernels::eig(b.in[0], n, values.data(), vectors.data())) return false;
    for (int64_t i = 0; i < n; ++i) {
      b.out[0][i] = values[i].real();
      b.out[1][i] = values[i].imag();
    }
    for (int64_t i = 0; i < n * n; ++i) {
      b.out[2][i] = vectors[i].real();
      b.out[3][i] = vectors[i].imag();
    }
    return true;
  });
  op.vjp = eig_gradient;
  const std::vector<Tensor> out = internal::call(std::move(op), {in});
  return {{out[0], out[1]}, {out[2], out[3]}};
}

std::pair<Tensor, Tensor> lu_factor(const Tensor& x) {
  const Tensor in = checked("lu_factor", x, false);
  const int64_t m = in.dim(-2), n = in.dim(-1), k = std::min(m, n);
  FunctionOp op = batched("lu_factor", in, {{m, n}, {k}}, "finite", [=](const Buffers& b) {
    std::vector<int32_t> pivots(k);
    kernels::lu(b.in[0], m, n, b.out[0], pivots.data());
    std::ranges::copy(pivots, b.out[1]);
    return true;
  });
  op.vjp = lu_gradient;
  const std::vector<Tensor> out = internal::call(std::move(op), {in});
  return {out[0], ops::cast(out[1], DType::kInt32)};
}

// ---- Determinants, inverses and equations.

std::pair<Tensor, Tensor> slogdet(const Tensor& x) {
  const Tensor in = checked("slogdet", x, true);
  const int64_t n = in.dim(-1);
  FunctionOp op = batched("slogdet", in, {{}, {}}, "finite", [n](const Buffers& b) {
    const auto [sign, log] = kernels::log_determinant(b.in[0], n);
    *b.out[0] = sign;
    *b.out[1] = log;
    return true;
  });
  op.vjp = [](const VjpArgs& args) -> std::vector<Gradient> {
    if (!args.output_gradients[1]) return {Gradient()};
    const Tensor dlog = for_matrices(args.output_gradients[1].dense());
    return {dlog * transposed(inv(args.inputs[0]))};
  };
  const std::vector<Tensor> out = internal::call(std::move(op), {in});
  return {out[0], out[1]};
}

Tensor det(const Tensor& x) {
  const auto [sign, log] = slogdet(x);
  return sign * ops::exp(log);
}

Tensor logdet(const Tensor& x) { return slogdet(x).second; }

Tensor inv(const Tensor& x) {
  const Tensor in = checked("inv", x, true);
  const int64_t n = in.dim(-1);
  FunctionOp op = batched("inv", in, {{n, n}}, "invertible",
                          [n](const Buffers& b) { return kernels::inverse(b.in[0], n, b.out[0]); });
  op.vjp = [](const VjpArgs& args) -> std::vector<Gradient> {
    const Tensor& y = args.outputs[0];
    const Tensor dy = args.output_gradients[0].dense();
    return {-ops::matmul(ops::matmul(y, dy, true), y, false, true)};
  };
  return internal::call1(std::move(op), {in});
}

Tensor solve(const Tensor& a, const Tensor& b) {
  const auto [matrices, right] = internal::promoted_floating(checked("solve", a, true), b);
  const bool vectors = right.rank() == matrices.rank() - 1;
  const Tensor columns = vectors ? ops::expand_dims(right, -1) : right;
  const int64_t n = matrices.dim(-1), k = columns.dim(-1);
  const Shape batch = batch_of(matrices);
  if (columns.rank() != matrices.rank() || batch_of(columns) != batch || columns.dim(-2) != n) {
    throw ValueError("solve: b must have the batch dimensions and rows of a, ", a.shape(),
                     ", received shape ", b.shape());
  }
  FunctionOp op = batched("solve", matrices, {{n, k}}, "invertible", [=](const Buffers& buffers) {
    return kernels::solve(buffers.in[0], n, buffers.in[1], k, buffers.out[0]);
  });
  op.vjp = [](const VjpArgs& args) -> std::vector<Gradient> {
    const Tensor db = solve(transposed(args.inputs[0]), args.output_gradients[0].dense());
    return {-ops::matmul(db, args.outputs[0], false, true), db};
  };
  const Tensor out = internal::call1(std::move(op), {matrices, columns});
  return vectors ? ops::squeeze(out, -1) : out;
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool lower) {
  const Tensor in = checked("solve_triangular", a, true);
  return solve(lower ? tril(in) : triu(in), b);
}

namespace {

Tensor pinv_without_gradient(const Tensor& x, std::optional<double> rcond) {
  const Tensor in = ops::stop_gradient(x);
  const auto [u, s, vh] = svd(in, false);
  const double epsilon = in.dtype() == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                                       : std::numeric_limits<double>::epsilon();
  const double limit =
      rcond.value_or(epsilon * static_cast<double>(std::max(in.dim(-1), in.dim(-2))));
  const Tensor kept = ops::greater(s, max(s, -1, true) * limit);
  const Tensor inverted =
      ops::where(kept, reciprocal(ops::where(kept, s, ops::ones_like(s))), ops::zeros_like(s));
  return ops::matmul(transposed(vh) * ops::expand_dims(inverted, -2), transposed(u));
}

}  // namespace

Tensor pinv(const Tensor& x, std::optional<double> rcond) {
  const Tensor in = checked("pinv", x, false);
  FunctionOp op = {
      .name = "pinv",
      .outputs = {{.shape = batch_of(in) + Shape{in.dim(-1), in.dim(-2)}, .dtype = in.dtype()}}};
  op.compute = [rcond](std::span<const Tensor> inputs) {
    return std::vector<Tensor>{pinv_without_gradient(inputs[0], rcond)};
  };
  op.vjp = pinv_gradient;
  return internal::call1(std::move(op), {in});
}

Tensor lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond) {
  const auto [matrix, right] = internal::promoted_floating(checked("lstsq", a, false), b);
  const bool is_vector = right.rank() == 1;
  const Tensor columns = is_vector ? ops::expand_dims(right, -1) : right;
  const Tensor out = ops::matmul(pinv(matrix, rcond), columns);
  return is_vector ? ops::squeeze(out, -1) : out;
}

Tensor matrix_power(const Tensor& x, int64_t n) {
  const Tensor in = checked("matrix_power", x, true);
  Tensor square = n < 0 ? inv(in) : in;
  Tensor out;
  for (int64_t left = std::abs(n); left > 0; left /= 2) {
    if (left % 2 == 1) out = out ? ops::matmul(out, square) : square;
    if (left > 1) square = ops::matmul(square, square);
  }
  if (out) return out;
  return ops::broadcast_to(eye(in.dim(-1), {}, 0, in.dtype()), in.shape());
}

Tensor matrix_rank(const Tensor& x, std::optional<double> tol) {
  const Tensor in = checked("matrix_rank", x, false);
  const Tensor s = singular_values(in);
  const double epsilon = in.dtype() == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                                       : std::numeric_limits<double>::epsilon();
  const double relative = epsilon * static_cast<double>(std::max(in.dim(-1), in.dim(-2)));
  const Tensor limit =
      tol ? Tensor::scalar(*tol).cast(in.dtype()) : ops::scale(max(s, -1, true), relative);
  return sum(ops::cast(ops::greater(s, limit), DType::kInt32), -1);
}

// ---- Norms.

Tensor norm(const Tensor& x, const NormOrder& ord, const Axes& axis, bool keepdims) {
  const Tensor in = internal::floating(x);
  const bool has_order = ord.number() || !ord.name().empty();
  if (axis.all() && !has_order) return vector_norm(in, 2, axis, keepdims);
  const std::vector<int> axes = axis.of(in.rank());
  if (axes.size() == 1) {
    if (!ord.name().empty()) {
      throw ValueError("norm: order '", ord.name(), "' requires two axes");
    }
    return vector_norm(in, ord.number().value_or(2), axes, keepdims);
  }
  if (axes.size() != 2) {
    throw ValueError("norm: requires one or two axes, received ", axes.size());
  }
  const Tensor out = matrix_norm(moveaxis(in, axes, {-2, -1}), ord);
  return ops::reshape(out, internal::reduced(in.shape(), axes, keepdims));
}

}  // namespace keel::keras_ops
