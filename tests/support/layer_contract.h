// Checks the contract that every layer fulfills which files may name.
#pragma once

#include <functional>
#include <string>

#include <keel/layers/layer.h>

namespace keel::testing_support {

// A layer and what is expected of it.
struct LayerContract {
  std::string class_name;  // the name in files
  std::string config;      // arguments of the constructor as JSON, if possible not the defaults
  Specs inputs;            // for a batch of two rows
  Specs output;            // output of the call with these inputs
  size_t trainable_weights = 0;
  size_t weights = 0;                             // including those that are not trainable
  std::function<void(Layer&)> prepare = nullptr;  // called before the layer, if given
};

// Expects that
// - the config of the layer creates an equal layer;
// - compute_output_spec() agrees with the result of a call, for any number of rows, also 0;
// - the layer has this number of weights once it is built, and gradients reach the trainable ones.
// Inputs of floating-point types are distinct values, others zeros or empty strings. Ragged inputs
// have two zeros in each row.
void expect_layer_contract(const LayerContract& contract);

// Return specs of one tensor for a LayerContract.
inline TensorSpec float_spec(const Shape& shape) { return {.shape = shape}; }
inline TensorSpec int_spec(const Shape& shape) { return {.shape = shape, .dtype = DType::kInt64}; }
inline TensorSpec string_spec(const Shape& shape) {
  return {.shape = shape, .dtype = DType::kString};
}
// Returns a list of two float specs.
inline Specs float_spec_pair(const Shape& shape) {
  return Specs::list({float_spec(shape), float_spec(shape)});
}

}  // namespace keel::testing_support
