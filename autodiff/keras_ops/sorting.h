// Sorting, searching and selection of keras.ops. Selected elements have gradients; positions are
// int32. Functions whose result shape depends on the values (unique, nonzero, where with one
// argument) do not accept symbolic tensors.
#pragma once

#include <string>

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// ---- Sorting. The order of equal elements is kept. NaN is the greatest.

// Return the elements in increasing order, and their positions in x.
Tensor sort(const Tensor& x, int axis = -1);
Tensor argsort(const Tensor& x, int axis = -1);
// Returns positions such that element kth is the one of sort(), smaller ones before it.
Tensor argpartition(const Tensor& x, int64_t kth, int axis = -1);
// Returns the k greatest elements of the last axis, in order, and their positions. `sorted` and
// `is_stable` have no effect: the result is always sorted, and equal elements keep their order.
std::pair<Tensor, Tensor> top_k(const Tensor& x, int64_t k, bool sorted = true,
                                bool is_stable = true);
// Returns whether fewer than k predictions of a row exceed that of the target.
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, int64_t k);

// ---- Searching.

// Returns the positions at which values keep the sequence sorted; `side` is "left" or "right".
Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values,
                    const std::string& side = "left");
// Returns the number of the bin of each element; bin i ends before bins[i].
Tensor digitize(const Tensor& x, const Tensor& bins);
// Returns the indices of elements that are not 0, one tensor for each axis.
std::vector<Tensor> nonzero(const Tensor& x);

// The results of unique(). The optional ones are empty unless requested.
struct Unique {
  Tensor values = {};   // in increasing order
  Tensor index = {};    // the first position of each value
  Tensor inverse = {};  // for each element the position of its value
  Tensor counts = {};   // number of occurrences of each value
};
// The optional arguments of unique().
struct UniqueOptions {
  bool sorted = true;                     // values are sorted in any case
  bool return_index = false;              // fill Unique::index
  bool return_inverse = false;            // fill Unique::inverse
  bool return_counts = false;             // fill Unique::counts
  Axis axis = {};                         // compare slices of this axis; unset: elements
  std::optional<int64_t> size = {};       // pad or cut the values to this number
  std::optional<double> fill_value = {};  // for padding; the smallest value by default
};
// Returns the distinct elements of x, which is flattened, or the distinct slices of an axis, in
// lexicographic order.
Unique unique(const Tensor& x, const UniqueOptions& options = {});

// ---- Selection.

// Returns the elements at int indices, which may be negative, of an axis or of the flattened x.
Tensor take(const Tensor& x, const Tensor& indices, Axis axis = {});
// Selects along one axis by indices that have the rank of x and broadcast to it elsewhere.
Tensor take_along_axis(const Tensor& x, const Tensor& indices, Axis axis = {});
// Returns x1 where the condition is true (not 0), x2 elsewhere.
Tensor where(const Tensor& condition, const Operand& x1, const Operand& x2);
std::vector<Tensor> where(const Tensor& condition);  // the same as nonzero(), int64
// Returns the choice of the first true condition, or else `default_value`.
Tensor select(const std::vector<Tensor>& condlist, const std::vector<Tensor>& choicelist,
              const Operand& default_value = 0);
// Returns, for each axis of `shape`, the indices of flat positions.
std::vector<Tensor> unravel_index(const Tensor& indices, const Shape& shape);

}  // namespace keel::keras_ops
