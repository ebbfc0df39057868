// What Keras 3.16.0 makes of one call of a layer, and the check that a layer here does the same.
#pragma once

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "layers/registry.h"

namespace keel::testing_support {

struct GoldenArray {
  Shape shape = {};
  std::vector<float> data = {};
  DType dtype = DType::kFloat32;

  Tensor tensor() const { return Tensor::from(data, shape).cast(dtype); }
};

// Gradients are those of sum(output * coef); empty data where there is none.
struct GoldenCall {
  const char* class_name;
  const char* config;  // JSON, as Keras gives it
  bool training;
  std::vector<GoldenArray> inputs, weights;
  GoldenArray coef, output;
  std::vector<GoldenArray> grad_inputs, grad_weights;
  std::vector<GoldenArray> weights_after = {};
};

inline void expect_near(const Tensor& received, const GoldenArray& expected,
                        const std::string& what) {
  ASSERT_EQ(received.shape(), expected.shape) << what;
  const Tensor floats = received.cast(DType::kFloat32);
  for (size_t i = 0; i < expected.data.size(); ++i) {
    EXPECT_NEAR(floats.data<float>()[i], expected.data[i], 2e-6 + 1e-5 * std::abs(expected.data[i]))
        << what << ", element " << i;
  }
}

inline void expect_golden(const GoldenCall& golden) {
  SCOPED_TRACE(std::string(golden.class_name) + " " + golden.config);
  const auto layer = layers::deserialize(
      Config::dict({{"class_name", golden.class_name}, {"config", parse_json(golden.config)}}));
  Tensors::Items inputs;
  std::vector<Tensor> tensors;
  for (const GoldenArray& input : golden.inputs) {
    tensors.push_back(input.tensor());
    inputs.emplace_back(tensors.back());
  }
  const Tensors x = inputs.size() == 1 ? inputs[0] : Tensors::list(inputs);
  layer->build(specs_of(x));
  const std::vector<Variable> weights = layer->weights();
  ASSERT_EQ(weights.size(), golden.weights.size());
  for (size_t i = 0; i < weights.size(); ++i) weights[i].assign(golden.weights[i].tensor());

  GradientTape tape({.persistent = true});
  for (const Tensor& t : tensors) {
    if (is_floating(t.dtype())) tape.watch(t);
  }
  const Tensor y = layer(x, {.training = golden.training}).tensor();
  const Tensor sum = ops::sum(y * golden.coef.tensor());
  expect_near(y, golden.output, "output");
  const auto grad_inputs = tape.input_gradient(sum, tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (golden.grad_inputs[i].data.empty()) continue;
    expect_near(grad_inputs[i].dense(), golden.grad_inputs[i], "gradient of input");
  }
  const auto grad_weights = tape.gradient(sum, weights);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (golden.grad_weights[i].data.empty()) continue;
    expect_near(grad_weights[i].dense(), golden.grad_weights[i],
                "gradient of " + weights[i].name());
  }
  for (size_t i = 0; i < golden.weights_after.size(); ++i) {
    expect_near(weights[i].read(), golden.weights_after[i], weights[i].name() + " after");
  }
}

}  // namespace keel::testing_support
