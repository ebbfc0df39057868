#include <keel/framework/internal/orthonormal.h>

#include <cmath>
#include <span>

namespace keel {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  // Four sums in a fixed order let the compiler vectorize the loop without changing the result.
  double lanes[4] = {};
  for (size_t i = 0; i < a.size(); ++i) lanes[i % 4] += a[i] * b[i];
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

void subtract_projection(std::span<double> vector, std::span<const double> unit) {
  const double part = dot(vector, unit);
  for (size_t i = 0; i < vector.size(); ++i) vector[i] -= part * unit[i];
}

}  // namespace

std::vector<double> orthonormal_vectors(int64_t count, int64_t length, const RandomStream& stream) {
  std::vector<float> draws(count * length);
  stream.normal(draws, 0, 0, 1);
  std::vector<double> vectors(count * length);
  for (int64_t i = 0; i < length; ++i) {
    for (int64_t k = 0; k < count; ++k) vectors[k * length + i] = draws[i * count + k];
  }
  for (int64_t k = 0; k < count; ++k) {
    const std::span<double> vector(&vectors[k * length], length);
    // The second pass removes the components that rounding has left.
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t other = 0; other < k; ++other) {
        subtract_projection(vector, {&vectors[other * length], vector.size()});
      }
    }
    const double norm = std::sqrt(dot(vector, vector));
    for (double& v : vector) v /= norm;
  }
  return vectors;
}

}  // namespace keel
