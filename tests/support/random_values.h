// random_values: random operands for the tests of kernels.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace keel::testing_support {

// Returns `size` values of the standard normal distribution.
template <class T = float>
std::vector<T> random_values(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<T> normal;
  std::vector<T> out(size);
  for (T& v : out) v = normal(random);
  return out;
}

}  // namespace keel::testing_support
