// The values of one step: StepData, its inputs x, y and sample_weight; ClassWeight, factors that
// scale the loss of an example by its class; and Logs, the values that it reports.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// Returns false for an empty list, which is the default argument, and for an empty tensor.
bool given(const Tensors& tensors);

// The parts of one batch.
struct StepData {
  Tensors x = {};              // the inputs of the model
  Tensors y = {};              // empty if there are no labels
  Tensors sample_weight = {};  // empty, one weight for all outputs, or structured like y
};

// Splits an element of a dataset: x alone (a tensor or a dict), or a list or tuple (x, y,
// sample_weight) whose last items may be omitted. Throws ValueError, prefixed with `caller`, for a
// list or tuple of more than three items or none.
StepData unpack_x_y_sample_weight(const Tensors& element, const char* caller = "Model");
// Returns the tuple (x), (x, y) or (x, y, sample_weight). Throws ValueError, prefixed with
// `caller`, if there are weights but no labels.
Tensors pack_x_y_sample_weight(const StepData& data, const char* caller = "Model");

// Returns the number of rows of the labels or, without labels, of x.
int64_t rows_of(const StepData& data);

// Assigns labels or weights (`given_tensors`) to the outputs of a model and returns one tensor per
// output. `given_tensors` is a leaf for the only output, a list by position, a dict with keys from
// `names`, or has the structure of `outputs`. An output that a dict omits gets an empty tensor.
// Throws ValueError, prefixed with `caller` and `what`, for any other structure.
std::vector<Tensor> match_outputs(const Tensors& given_tensors, const Tensors& outputs,
                                  const std::vector<std::string>& names, const char* caller,
                                  const char* what);

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

// Values by name, sorted by name: {"auc": 0.91, "loss": 0.31, "val_loss": 0.33}.
using Logs = std::map<std::string, double>;

}  // namespace keel
