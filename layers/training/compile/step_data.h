// StepData: what one step is given: x, y and sample_weight.
#pragma once

#include <keel/framework/tensor_like.h>

namespace keel {

// True unless it stands for nothing: an empty list, as a default argument is, or an empty tensor.
bool given(const Tensors& tensors);

struct StepData {
  Tensors x = {};
  Tensors y = {};              // nothing if there are no labels
  Tensors sample_weight = {};  // nothing, one for all outputs, or structured like y
};

// An element of a dataset: x alone (a tensor or a dict), or a list or tuple of x, y and
// sample_weight, of which the last may be left out. ValueError, naming `caller`, for another number
// of items.
StepData unpack_x_y_sample_weight(const Tensors& element, const char* caller = "Model");
// The tuple of those that are given. ValueError, naming `caller`, for weights without labels.
Tensors pack_x_y_sample_weight(const StepData& data, const char* caller = "Model");

// Rows of the labels, or else of x.
int64_t rows_of(const StepData& data);

// `given_tensors`, labels or weights, for each output of a model, by position: a leaf for the only
// output, a list by position, a dict by `names`, or the structure of the outputs. Outputs that a
// dict lacks have an empty tensor. ValueError, naming `caller` and `what`, if that does not fit.
std::vector<Tensor> match_outputs(const Tensors& given_tensors, const Tensors& outputs,
                                  const std::vector<std::string>& names, const char* caller,
                                  const char* what);

}  // namespace keel
