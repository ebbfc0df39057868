// Class weights: how much examples count by their class.
#pragma once

#include <cstdint>
#include <map>

#include <keel/framework/tensor_like.h>

namespace keel {

using ClassWeight = std::map<int64_t, double>;

// A weight for each row of labels: class numbers [batch] or [batch, 1], rounded, or one-hot rows
// [batch, classes]; 1 for a class that `weights` lacks. ValueError, naming `caller`, for other
// shapes.
Tensor class_weight_to_sample_weights(const Tensor& labels, const ClassWeight& weights,
                                      const char* caller = "class_weight");

// A batch (x, y) with these weights as its third item. ValueError, naming `caller`, for a batch
// that has weights already, without labels, or with those of several outputs.
Tensors with_class_weights(const Tensors& batch, const ClassWeight& weights, const char* caller);

}  // namespace keel
