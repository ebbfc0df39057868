// Projections between features and attention heads.
#pragma once

#include <string>

#include <keel/layers/core/dense.h>

namespace keel {

// Creates a layer that computes x . kernel + bias, summed over the first `summed_axes` axes of the
// kernel: [..., in] -> [..., heads, dim] with a kernel [in, heads, dim], or [..., heads, dim] ->
// [..., out] with a kernel [heads, dim, out]. `options` are those of an attention layer; all of
// them use the same names.
layers::EinsumDense make_projection(const auto& options, const char* name, const Shape& kernel,
                                    int summed_axes, const Activation& activation = "linear") {
  const std::string letters = std::string("abcdefgh").substr(0, kernel.rank());
  const std::string in = letters.substr(0, summed_axes), out = letters.substr(summed_axes);
  PartialShape output;
  output.shape = kernel.slice(summed_axes, kernel.rank());
  return layers::EinsumDense({.equation = "..." + in + "," + letters + "->..." + out,
                              .output_shape = output,
                              .activation = activation,
                              .bias_axes = options.use_bias ? std::optional(out) : std::nullopt,
                              .kernel_initializer = options.kernel_initializer,
                              .bias_initializer = options.bias_initializer,
                              .kernel_regularizer = options.kernel_regularizer,
                              .bias_regularizer = options.bias_regularizer,
                              .activity_regularizer = options.activity_regularizer,
                              .kernel_constraint = options.kernel_constraint,
                              .bias_constraint = options.bias_constraint,
                              .name = name,
                              .dtype = options.dtype});
}

}  // namespace keel
