// Small models that tests write, read and call.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>

namespace keel {

using Values = std::vector<float>;

inline Tensor row(const Values& values) {
  return Tensor::from(values, {1, static_cast<int64_t>(values.size())});
}

// A layer of one unit that returns the sum of the features.
inline layers::Dense ones(const std::string& name = {}) {
  return layers::Dense({.units = 1, .kernel_initializer = "ones", .name = name});
}

// Creates a model from the config of `model` and expects both configs to be equal. Weights are
// initialized again.
inline Functional copy(const Functional& model) {
  const Config config = model->get_config();
  const Functional read = FunctionalModel::from_config(parse_json(to_json(config)));
  EXPECT_EQ(read->get_config(), config);
  return read;
}

}  // namespace keel
