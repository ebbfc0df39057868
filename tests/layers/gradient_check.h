// Checks gradients of layers against finite differences.
#pragma once

#include <cmath>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/layer.h>

namespace keel::testing_support {

// Returns numbers at least 0.1 apart from each other and from 0, in no particular order. They are
// float64, the dtype that checked layers must compute in.
inline Tensor distinct_doubles(const Shape& shape) {
  const int64_t n = shape.size();
  std::vector<double> values(n);
  int64_t stride = 7;
  while (std::gcd(stride, n) > 1) ++stride;
  for (int64_t i = 0; i < n; ++i) {
    values[i * stride % n] = 0.1 * static_cast<double>(i - n / 2) + 0.05;
  }
  return Tensor::from(values, shape);
}

// Expects the gradients of a weighted sum of layer(x), with respect to x and all trainable weights,
// to equal finite differences. The layer must compute in float64.
inline void expect_gradients_are_slopes(const LayerHandle<Layer>& layer, const Tensor& x,
                                        bool training = false) {
  const auto value = [&](const Tensor& at) {
    const Tensor y = layer(at, {.training = training});
    std::vector<double> weights(y.size());
    for (int64_t i = 0; i < y.size(); ++i) weights[i] = 1 + 0.3 * static_cast<double>(i % 5);
    return ops::sum(y * Tensor::from(weights, y.shape()));
  };
  value(x);
  const std::vector<Variable> variables = layer->trainable_variables();
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor sum = value(x);
  constexpr double kStep = 1e-5;
  const auto check = [&](const Tensor& gradient, const Tensor& at, const auto& value_at,
                         const std::string& what) {
    for (int64_t i = 0; i < at.size(); ++i) {
      const auto moved = [&](double by) {
        std::vector<double> values = at.to_vector<double>();
        values[i] += by;
        return value_at(Tensor::from(values, at.shape()));
      };
      const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      EXPECT_NEAR(gradient.data<double>()[i], slope, 1e-6 * (1 + std::abs(slope)))
          << what << ", element " << i;
    }
  };
  check(
      tape.input_gradient(sum, {x})[0].dense(), x,
      [&](const Tensor& at) { return value(at).item<double>(); }, "input");
  for (const Variable& v : variables) {
    const Tensor kept = v.read();
    const auto value_at = [&](const Tensor& at) {
      v.assign(at);
      return value(x).item<double>();
    };
    check(tape.gradient(sum, {v})[0].dense(), kept, value_at, v.name());
    v.assign(kept);
  }
}

}  // namespace keel::testing_support
