// Optimizers of every class with OptimizerOptions::lazy_rows, and tables and gradients for them.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/expectations.h"

namespace keel::lazy_rows_testing {

using Bits = std::vector<float>;

inline constexpr int64_t kRows = 60;
inline constexpr int64_t kDim = 5;

inline LearningRate falling() {
  return optimizers::schedules::ExponentialDecay(
      {.initial_learning_rate = 0.05, .decay_steps = 7, .decay_rate = 0.9});
}

inline std::vector<OptimizerHandle> all_kinds(LazyRows lazy) {
  return {
      optimizers::Adam({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::Adam({.learning_rate = 0.1,
                        .amsgrad = true,
                        .clipvalue = 0.3,
                        .loss_scale_factor = 4,
                        .lazy_rows = lazy}),
      optimizers::AdamW({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::SGD({.learning_rate = falling(), .momentum = 0.9, .lazy_rows = lazy}),
      optimizers::SGD(
          {.learning_rate = 0.05, .momentum = 0.8, .nesterov = true, .lazy_rows = lazy}),
      optimizers::SGD({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::Adagrad({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::Adagrad({.learning_rate = 0.1, .lazy_rows = lazy}),
      optimizers::RMSprop({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::RMSprop(
          {.learning_rate = falling(), .momentum = 0.9, .centered = true, .lazy_rows = lazy}),
      optimizers::Adadelta({.learning_rate = 0.5, .lazy_rows = lazy}),
      optimizers::Adamax({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::Nadam({.learning_rate = falling(), .weight_decay = 0.1, .lazy_rows = lazy}),
      optimizers::Lion({.learning_rate = falling(), .lazy_rows = lazy}),
      optimizers::Ftrl({.learning_rate = falling(), .lazy_rows = lazy}),
  };
}

inline Variable table(int64_t rows = kRows, DType dtype = DType::kFloat32) {
  Tensor start = Tensor::zeros({rows, kDim});
  float x = 0;
  for (float& value : start.mutable_data<float>()) value = std::sin(x += 0.37F);
  return Variable(start.cast(dtype), {.name = "table"});
}

inline Variable bias() { return Variable(Tensor::full({kDim}, 0.5F), {.name = "bias"}); }

// Returns rows, one of them twice, that differ for each step and replica.
inline IndexedSlices slices(const Variable& of, int64_t step, int64_t replica = 0) {
  std::mt19937 random(static_cast<uint32_t>(1000 * replica + step));
  std::vector<int64_t> ids(6);
  for (int64_t& id : ids) id = static_cast<int64_t>(random() % of.shape()[0]);
  ids[1] = ids[0];
  ids[2] = step % 3;  // named by all replicas
  std::vector<float> values(ids.size() * kDim);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  values[3] = -0.0F;
  return {.ids = Tensor::from(ids, {6}),
          .values = Tensor::from(values, {6, kDim}).cast(of.dtype()),
          .dense_shape = of.shape()};
}

inline Gradient bias_gradient(int64_t step) {
  return Tensor::full({kDim}, static_cast<float>(std::cos(static_cast<double>(step))));
}

inline Bits bits(const Variable& variable) {
  return variable.read().cast(DType::kFloat32).to_vector<float>();
}

// Returns the table and its slots.
inline Bits state_of(Optimizer& optimizer, const Variable& of) {
  Bits out;
  // Reads the slots first, because their rows are deferred too.
  for (const Variable& slot : optimizer.slots(of)) {
    for (const float x : bits(slot)) out.push_back(x);
  }
  for (const float x : bits(of)) out.push_back(x);
  return out;
}

inline void expect_bits(const Bits& received, const Bits& expected, const std::string& what) {
  SCOPED_TRACE(what);
  testing_support::expect_same_bits(received, expected);
}

}  // namespace keel::lazy_rows_testing
