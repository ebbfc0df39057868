// Random noise, and checks of the options of layers that apply it.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer_types.h>

namespace keel {

namespace noise {

// Returns 1 for kept elements and 0 for dropped ones; an element is dropped with probability
// `rate`. `dtype` must be floating.
Tensor kept(const Shape& shape, DType dtype, double rate, const RandomNumbers& random);
// Returns normally distributed numbers.
Tensor normal(const Shape& shape, DType dtype, double mean, double stddev,
              const RandomNumbers& random);
// Returns x / (1 - rate) for kept elements and 0 for dropped ones. Differentiable; the tape stores
// no mask, because the gradient draws it again. Throws TypeError unless x is floating.
Tensor dropout(const Tensor& x, double rate, const RandomNumbers& random);
// Shares the choice among all elements along dimensions where `shape` is 1.
Tensor dropout(const Tensor& x, double rate, const Shape& shape, const RandomNumbers& random);

// Returns the shape of the noise for x: `wanted`, with unknown dimensions replaced by those of x.
// Throws ValueError, prefixed with `caller`, unless it has x's rank and each dimension is x's or 1.
Shape shape_for(const Shape& x, const Shape& wanted, const std::string& caller);
// Throws ValueError, prefixed with `caller`, unless 0 <= rate and rate <= 1, or rate < 1 if
// `below_one`.
void check_rate(double rate, bool below_one, const std::string& caller);
// Throws ValueError, prefixed with `caller`, if a dimension is 0.
void check_shape(const std::optional<Shape>& wanted, const std::string& caller);

}  // namespace noise

}  // namespace keel
