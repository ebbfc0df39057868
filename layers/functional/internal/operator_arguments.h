// The arguments of operators in graphs: tensors, and constants of Python.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/autodiff/keras_ops/core.h>
#include <keel/autodiff/keras_ops/operand.h>
#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>
#include <keel/layers/functional/internal/operator_placeholder.h>

namespace keel {

// Reads the arguments of one call by name. Values are those of Python, with placeholders for
// tensors. Functions that return a value throw ValueError, naming the argument, if it is missing
// and has no default, and TypeError if it has another type.
class OperatorArguments {
 public:
  OperatorArguments(const Config& values, const std::vector<Tensor>& tensors)
      : values_(values), tensors_(tensors) {}

  bool has(const char* name) const;       // and is not null
  bool is_given(const char* name) const;  // also as null
  bool is_list(const char* name) const;
  // Return an argument as a tensor or a number, as a tensor, and as a list of tensors.
  keras_ops::Operand operand(const char* name) const;
  Tensor tensor(const char* name) const { return operand(name).tensor(); }
  std::vector<Tensor> tensors(const char* name) const;
  // Return plain values.
  keras_ops::Axes axes(const char* name = "axis") const;  // null: all
  keras_ops::Axis axis(const char* name = "axis") const;  // null: none
  int64_t integer(const char* name, int64_t otherwise) const;
  double number(const char* name, double otherwise) const;
  bool flag(const char* name) const;  // missing: false
  std::string text(const char* name) const;
  std::string text(const char* name, const char* otherwise) const;
  int int_or(const char* name, int otherwise) const;
  std::optional<double> optional_number(const char* name) const;
  std::vector<int64_t> numbers(const char* name) const;  // of a list or of one number
  // Returns the argument as it is, null if it is missing.
  Config value(const char* name) const;
  const Config& values() const { return values_; }
  std::vector<int64_t> integers(const char* name) const;
  DType dtype(const char* name = "dtype") const;
  std::optional<DType> optional_dtype(const char* name = "dtype") const;
  // Returns the elements of x at the key of Python, with indices, slices, an ellipsis and new axes.
  Tensor item(const Tensor& x, const char* name) const;

 private:
  const Config& at(const char* name) const;
  keras_ops::Operand operand_of(const Config& value) const;

  const Config& values_;
  const std::vector<Tensor>& tensors_;
};

}  // namespace keel
