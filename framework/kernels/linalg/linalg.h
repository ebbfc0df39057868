// Factorizations of single matrices of doubles and the Fourier transform, computed by Eigen.
// Matrices are row-major.
#pragma once

#include <complex>
#include <cstdint>
#include <utility>

namespace keel::kernels {

// Computes the lower factor L of x = L L^T [n, n]. Returns false unless x is positive definite; it
// reads the lower triangle of x only.
bool cholesky(const double* x, int64_t n, double* lower);
// Computes the inverse of x [n, n]. Returns false if x is singular.
bool inverse(const double* x, int64_t n, double* out);
// Returns the sign and the logarithm of the absolute value of the determinant of x [n, n].
std::pair<double, double> log_determinant(const double* x, int64_t n);
// Computes the solution of a out = b for a [n, n], b [n, k]. Returns false if a is singular.
bool solve(const double* a, int64_t n, const double* b, int64_t k, double* out);
// Computes the factors L (below the diagonal, with ones on it) and U of x [m, n] in one matrix. Row
// i was exchanged with row pivots[i], for i = 0, 1, ...
void lu(const double* x, int64_t m, int64_t n, double* out, int32_t* pivots);
// Computes x = q r for x [m, n]: q [m, k] and r [k, n] with k = m if `complete`, else min(m, n).
void qr(const double* x, int64_t m, int64_t n, bool complete, double* q, double* r);
// Computes the singular values of x [m, n], in decreasing order, and unless they are null the
// vectors u [m, k] and vt [l, n], where k = m and l = n if `full`, else min(m, n).
void svd(const double* x, int64_t m, int64_t n, bool full, double* u, double* s, double* vt);
// Computes the eigenvalues of the symmetric x [n, n], in increasing order, and the eigenvectors as
// columns. Reads the lower triangle of x only.
void eigh(const double* x, int64_t n, double* values, double* vectors);
// Computes the eigenvalues of x [n, n] and the eigenvectors as columns, each of length 1 with a
// real greatest component. Conjugate pairs follow each other. Returns false if x is not finite or
// the iteration does not converge.
bool eig(const double* x, int64_t n, std::complex<double>* values, std::complex<double>* vectors);

// Computes out[k] = sum of in[j] e^(-2 pi i j k / n), or with the opposite sign if `backward`;
// nothing is divided by n.
void fourier(const std::complex<double>* in, int64_t n, bool backward, std::complex<double>* out);

}  // namespace keel::kernels
