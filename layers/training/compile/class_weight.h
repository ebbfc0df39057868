// Class weights: factors that scale the loss of an example by its class (fit's class_weight).
#pragma once

#include <cstdint>
#include <map>

#include <keel/framework/tensor_like.h>

namespace keel {

// Weight by class number; a class without an entry has weight 1.
using ClassWeight = std::map<int64_t, double>;

// Returns a float32 weight for each row of `labels`. Labels are class numbers [batch] or [batch,
// 1], rounded to the nearest integer, or one-hot rows [batch, classes]. A class that `weights` does
// not contain gets 1. Throws ValueError, prefixed with `caller`, for labels of another rank.
Tensor class_weight_to_sample_weights(const Tensor& labels, const ClassWeight& weights,
                                      const char* caller = "class_weight");

// Returns the batch (x, y, sample_weight) for a batch (x, y), with sample weights computed from the
// classes of y. Throws ValueError, prefixed with `caller`, if the batch already has sample weights,
// has no labels, or has labels for several outputs.
Tensors with_class_weights(const Tensors& batch, const ClassWeight& weights, const char* caller);

}  // namespace keel
