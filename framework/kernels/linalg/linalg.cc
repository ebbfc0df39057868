#include <keel/framework/kernels/linalg/linalg.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>

namespace keel::kernels {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ConstMap = Eigen::Map<const Matrix>;
using Map = Eigen::Map<Matrix>;

bool is_singular(const Eigen::PartialPivLU<Matrix>& lu) {
  return lu.matrixLU().diagonal().cwiseEqual(0).any();
}

}  // namespace

bool cholesky(const double* x, int64_t n, double* lower) {
  const Eigen::LLT<Matrix> llt(ConstMap(x, n, n));
  Map(lower, n, n) = Matrix(llt.matrixL());
  return llt.info() == Eigen::Success;
}

bool inverse(const double* x, int64_t n, double* out) {
  const Eigen::PartialPivLU<Matrix> lu(ConstMap(x, n, n));
  if (is_singular(lu)) return false;
  Map(out, n, n) = lu.inverse();
  return true;
}

std::pair<double, double> log_determinant(const double* x, int64_t n) {
  const Eigen::PartialPivLU<Matrix> lu(ConstMap(x, n, n));
  double sign = lu.permutationP().determinant(), log = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double d = lu.matrixLU()(i, i);
    if (d == 0) return {0, -std::numeric_limits<double>::infinity()};
    sign = d < 0 ? -sign : sign;
    log += std::log(std::abs(d));
  }
  return {sign, log};
}

bool solve(const double* a, int64_t n, const double* b, int64_t k, double* out) {
  const Eigen::PartialPivLU<Matrix> lu(ConstMap(a, n, n));
  if (is_singular(lu)) return false;
  Map(out, n, k) = lu.solve(ConstMap(b, n, k));
  return true;
}

// Eigen returns a permutation, while LAPACK and Keras return the exchanges, so the elimination is
// done here.
void lu(const double* x, int64_t m, int64_t n, double* out, int32_t* pivots) {
  Map a(out, m, n);
  a = ConstMap(x, m, n);
  for (int64_t i = 0; i < std::min(m, n); ++i) {
    int64_t best = 0;
    a.col(i).tail(m - i).cwiseAbs().maxCoeff(&best);
    best += i;
    pivots[i] = static_cast<int32_t>(best);
    if (best != i) a.row(i).swap(a.row(best));
    if (a(i, i) == 0) continue;
    for (int64_t r = i + 1; r < m; ++r) {
      a(r, i) /= a(i, i);
      a.row(r).tail(n - i - 1) -= a(r, i) * a.row(i).tail(n - i - 1);
    }
  }
}

void qr(const double* x, int64_t m, int64_t n, bool complete, double* q, double* r) {
  const Eigen::HouseholderQR<Matrix> of(ConstMap(x, m, n));
  const int64_t k = complete ? m : std::min(m, n);
  Map(q, m, k) = of.householderQ() * Matrix::Identity(m, k);
  Map result(r, k, n);
  result.setZero();
  for (int64_t i = 0; i < std::min(k, n); ++i) {
    result.row(i).tail(n - i) = of.matrixQR().row(i).tail(n - i);
  }
}

void svd(const double* x, int64_t m, int64_t n, bool full, double* u, double* s, double* vt) {
  const int64_t k = std::min(m, n);
  unsigned options = 0;
  if (u != nullptr) {
    options = full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                   : Eigen::ComputeThinU | Eigen::ComputeThinV;
  }
  // Column-major: thin vectors require it.
  const Eigen::JacobiSVD<Eigen::MatrixXd> of(Eigen::MatrixXd(ConstMap(x, m, n)), options);
  Eigen::Map<Eigen::VectorXd>(s, k) = of.singularValues();
  if (u == nullptr) return;
  Map(u, m, full ? m : k) = of.matrixU();
  Map(vt, full ? n : k, n) = of.matrixV().transpose();
}

bool eig(const double* x, int64_t n, std::complex<double>* values, std::complex<double>* vectors) {
  if (!std::all_of(x, x + n * n, [](double v) { return std::isfinite(v); })) return false;
  if (n == 0) return true;
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(Eigen::Map<const Matrix>(x, n, n));
  if (solver.info() != Eigen::Success) return false;
  Eigen::MatrixXcd columns = solver.eigenvectors();
  for (int64_t j = 0; j < n; ++j) {
    values[j] = solver.eigenvalues()[j];
    Eigen::Index greatest = 0;
    columns.col(j).cwiseAbs().maxCoeff(&greatest);
    const std::complex<double> turn = std::conj(columns(greatest, j));
    const bool is_real = values[j].imag() == 0;
    columns.col(j) *= is_real ? 1 : turn / std::abs(turn);
    columns.col(j).normalize();
    for (int64_t i = 0; i < n; ++i) vectors[i * n + j] = columns(i, j);
  }
  return true;
}

void eigh(const double* x, int64_t n, double* values, double* vectors) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> of(Eigen::MatrixXd(ConstMap(x, n, n)));
  Eigen::Map<Eigen::VectorXd>(values, n) = of.eigenvalues();
  Map(vectors, n, n) = of.eigenvectors();
}

}  // namespace keel::kernels
