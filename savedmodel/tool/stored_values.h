// The tensors of a file or model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel::tool {

// A tensor of a file.
struct StoredValue {
  std::string name;  // "dense/kernel"
  TensorSpec spec;
  std::function<Tensor()> get;
  std::function<Tensor(int64_t)> row;  // returns one row; empty if the tensor has no rows
};

// All tensors of a file or model.
struct StoredValues {
  std::vector<StoredValue> weights;
  std::vector<StoredValue> optimizer;
};

// Returns the text of an element.
std::string value_text(const Tensor& value, int64_t i);

}  // namespace keel::tool
