// The argument types of keel::keras_ops, and the rules by which operands get a common dtype.
//
// keel::keras_ops has the functions of keras.ops under their names, with their arguments, default
// values and dtype rules. Programs include <keel/ops.h>. The functions are built from those of
// keel::ops (autodiff/ops.h), which are stricter and faster: operands of keel::ops must have the
// same dtype. Most functions that are only here are not tuned for large tensors.
//
// Functions that rearrange elements need fully defined shapes; they throw ValueError for a symbolic
// tensor with an unknown dimension.
#pragma once

#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel::keras_ops {

// A tensor, a variable or a number. A number adopts the dtype of the tensor that it is combined
// with, as a Python number does in Keras; only its kind (bool, integer, float) counts.
class Operand {
 public:
  // Convert a tensor, or a variable.
  Operand(Tensor tensor) : tensor_(std::move(tensor)) {}  // NOLINT: implicit
  template <class T>
    requires(!std::is_arithmetic_v<T> && std::convertible_to<const T&, Tensor>)
  Operand(const T& value) : tensor_(value) {}  // NOLINT: implicit
  // Convert a number.
  Operand(double value) : tensor_(Tensor::scalar(value)), is_number_(true) {}   // NOLINT: implicit
  Operand(int value) : Operand(int64_t{value}) {}                               // NOLINT: implicit
  Operand(int64_t value) : tensor_(Tensor::scalar(value)), is_number_(true) {}  // NOLINT: implicit
  Operand(bool value) : tensor_(Tensor::scalar(value)), is_number_(true) {}     // NOLINT: implicit

  // Returns the value. A number is a scalar of float64, int64 or bool.
  const Tensor& tensor() const { return tensor_; }
  // Returns true if the operand was a C++ number.
  bool is_number() const { return is_number_; }

 private:
  Tensor tensor_;
  bool is_number_ = false;
};

// The axes of a reduction: all of them by default, one, or several.
class Axes {
 public:
  // Make all axes, one, or a list.
  Axes() = default;                                                     // all axes
  Axes(std::nullopt_t) {}                                               // NOLINT: implicit
  Axes(int axis) : list_{axis}, all_(false) {}                          // NOLINT: implicit
  Axes(std::initializer_list<int> axes) : list_(axes), all_(false) {}   // NOLINT: implicit
  Axes(std::vector<int> axes) : list_(std::move(axes)), all_(false) {}  // NOLINT: implicit

  // Returns true if all axes are meant.
  bool all() const { return all_; }
  // Returns the axes as sorted numbers in [0, rank). Throws ValueError for an axis that is out of
  // range or listed twice.
  std::vector<int> of(int rank) const;

 private:
  std::vector<int> list_;
  bool all_ = true;
};

// A single axis, or none: the function then works on the flattened tensor.
using Axis = std::optional<int>;

// Returns the dtype that Keras gives to the result of these operands: the greatest of bool, uint8,
// int32, int64, float32 and float64. uint8 and int8 together give int32.
DType result_type(std::initializer_list<Operand> operands);

namespace internal {

// Returns both operands converted to their common dtype.
std::pair<Tensor, Tensor> promoted(const Operand& a, const Operand& b);
// Returns both operands converted to their common dtype, or to float32 if that is not floating.
std::pair<Tensor, Tensor> promoted_floating(const Operand& a, const Operand& b);
// Returns x, or x converted to float32 if it is not floating-point.
Tensor floating(const Tensor& x);
// Returns x, or x converted to int32 if it is bool or has 8 bits.
Tensor countable(const Tensor& x);

}  // namespace internal
}  // namespace keel::keras_ops
