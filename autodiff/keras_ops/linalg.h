// Linear algebra of keras.ops. Matrices are the last two axes; the axes before them are a batch.
// Everything is computed in double, also for float32. Functions without "no gradient" have one.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/keras_ops/operand.h>
#include <keel/autodiff/keras_ops/signal.h>

namespace keel::keras_ops {

// ---- Factorizations.

// Returns the lower factor L of x = L L^T, or its transpose if `upper`. Throws ValueError unless x
// is positive definite.
Tensor cholesky(const Tensor& x, bool upper = false);
// Returns the inverse of the matrix whose Cholesky factor is x. The gradient is also that of the
// elements of x in the other triangle, which count as 0.
Tensor cholesky_inverse(const Tensor& x, bool upper = false);
// Returns orthogonal q and upper triangular r; `mode` is "reduced" or "complete". The gradient
// requires that the first min(rows, columns) columns are independent. That of "complete" also
// requires at least as many columns as rows.
std::pair<Tensor, Tensor> qr(const Tensor& x, const std::string& mode = "reduced");
// The results of svd(): x = u diag(s) vh. The gradient of u and vh requires distinct values that
// are not 0, and with `full_matrices` also a square x.
struct Svd {
  Tensor u;   // left vectors, as columns
  Tensor s;   // values, in decreasing order
  Tensor vh;  // right vectors, as rows
};
// Returns the singular value decomposition, with square u and vh if `full_matrices`. Use
// singular_values() for compute_uv=false of Keras.
Svd svd(const Tensor& x, bool full_matrices = true);
Tensor singular_values(const Tensor& x);  // svd() with compute_uv=false in Keras
// Returns eigenvalues, in increasing order, and eigenvectors (columns) of symmetric matrices.
std::pair<Tensor, Tensor> eigh(const Tensor& x);
// Returns eigenvalues and eigenvectors (columns) of square matrices. The vectors have length 1 and
// a real greatest component. The gradient requires real and distinct eigenvalues; backpropagating
// from complex ones throws NotImplementedError.
std::pair<Complex, Complex> eig(const Tensor& x);
// Returns L and U in one matrix, and int32 exchanges of rows. The gradient requires that the first
// min(rows, columns) pivots are not 0; it takes the exchanges for constant.
std::pair<Tensor, Tensor> lu_factor(const Tensor& x);

// ---- Determinants, inverses and equations. Throw ValueError for singular matrices.

// Return the determinant; its gradient requires an invertible matrix.
Tensor det(const Tensor& x);
std::pair<Tensor, Tensor> slogdet(const Tensor& x);  // the sign and log|det|
Tensor logdet(const Tensor& x);                      // for positive definite matrices
Tensor inv(const Tensor& x);                         // the inverse
// Returns x of a x = b; b may be a vector.
Tensor solve(const Tensor& a, const Tensor& b);
// Reads one triangle of a only.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool lower = false);
// The pseudoinverse; singular values up to rcond times the greatest count as 0. The gradient takes
// the rank for constant.
Tensor pinv(const Tensor& x, std::optional<double> rcond = {});
// The solution of least squares with the smallest norm, pinv(a) b.
Tensor lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = {});
// Returns the product of n factors x, or of inverses if n is negative.
Tensor matrix_power(const Tensor& x, int64_t n);
Tensor matrix_rank(const Tensor& x, std::optional<double> tol = {});  // int32, no gradient

// ---- Norms.

// The order of a norm. `ord` of vectors: a number (also infinite), 2 by default. Of matrices (two
// axes): "fro" (the default), "nuc", 1, -1, 2, -2 or an infinity. Without ord and axis, x is
// flattened.
class NormOrder {
 public:
  // Make an order: none, a number, or a name.
  NormOrder() = default;
  NormOrder(double order) : number_(order) {}                      // NOLINT: implicit
  NormOrder(int order) : number_(order) {}                         // NOLINT: implicit
  NormOrder(std::string name) : name_(std::move(name)) {}          // NOLINT: implicit
  NormOrder(const char* name) : name_(name) {}                     // NOLINT: implicit
  const std::optional<double>& number() const { return number_; }  // empty for names
  const std::string& name() const { return name_; }                // empty for numbers

 private:
  std::optional<double> number_;
  std::string name_;
};
// Returns the norms of the vectors or matrices in `axis`.
Tensor norm(const Tensor& x, const NormOrder& ord = {}, const Axes& axis = {},
            bool keepdims = false);

}  // namespace keel::keras_ops
