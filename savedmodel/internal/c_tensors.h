// Conversion of the tensors of the C interface to tensors of Keel, and back. Callers are not
// trusted: all counts, sizes and pointers are checked before they are used.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/tensor_like.h>
#include <keel/savedmodel/c_api.h>

namespace keel::c_tensors {

// Returns *pointer. Throws ValueError, naming the argument `what`, if the pointer is null.
template <class T>
T& deref(T* pointer, const char* caller, const char* what) {
  if (pointer == nullptr) throw ValueError(caller, ": ", what, " must not be NULL");
  return *pointer;
}

// A tensor that C programs may view.
struct NamedTensor {
  std::string name;
  TensorLike value;
  std::vector<keel_string> strings = {};  // views of value's values if they are strings
};

// Copies `count` elements at `data`, which need not be aligned. Throws ValueError if `bytes` is not
// their size.
Tensor copied(const std::string& caller, DType dtype, const void* data, size_t bytes, int64_t count,
              const Shape& shape);

// Copies a tensor of a C program, which must fit `spec`. Throws TypeError for another dtype or
// layout, and ValueError for another shape or for counts that contradict each other. Messages start
// with `caller`.
TensorLike tensor_of(const std::string& caller, const keel_tensor& given, const TensorSpec& spec);

// Returns a view that is valid as long as `named`.
keel_tensor view_of(const NamedTensor& named);

}  // namespace keel::c_tensors
