// The arguments of a record of a function of keras.ops, and the table of functions that can be
// replayed.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/ops.h>

namespace keel::conformance {

// The arguments by name. It records which of them were read.
class OpArguments {
 public:
  // Reads the arrays among the arguments, as float64 instead of float32 if `wide`.
  explicit OpArguments(const Config& arguments, bool wide = false);

  // Returns the tensors of an argument: one, or those of a list.
  std::vector<Tensor>& tensors(const std::string& name);
  bool has(const std::string& name);    // false for null
  bool names(const std::string& name);  // true for null
  Tensor tensor(const std::string& name) { return tensors(name).at(0); }
  std::optional<Tensor> maybe_tensor(const std::string& name);
  keras_ops::Operand operand(const std::string& name);  // a tensor or a number
  std::optional<keras_ops::Operand> maybe_operand(const std::string& name);
  keras_ops::Complex complex(const std::string& name);  // one array, or its two parts

  double number(const std::string& name, double otherwise);
  std::optional<double> maybe_number(const std::string& name);
  int64_t integer(const std::string& name, int64_t otherwise);
  std::optional<int64_t> maybe_integer(const std::string& name);
  bool boolean(const std::string& name, bool otherwise);
  std::string string(const std::string& name, const std::string& otherwise);
  std::optional<DType> dtype();
  std::vector<int64_t> integers(const std::string& name);  // a number, a list or a tensor
  std::vector<int> axes_list(const std::string& name);
  keras_ops::Axes axes(const std::string& name = "axis", const keras_ops::Axes& otherwise = {});
  keras_ops::Axis axis(const std::string& name = "axis");
  Shape shape(const std::string& name) { return Shape(integers(name)); }
  keras_ops::Pair pair(const std::string& name, int64_t otherwise);
  keras_ops::SpatialSizes sizes(const std::string& name, int64_t otherwise);

  // Returns the value as it stands in the record; null if it is absent.
  const Config& config(const std::string& name);
  // Throws ValueError, naming the arguments that were not read.
  void finish() const;
  // Returns the arguments that were read.
  const std::set<std::string>& asked() const { return asked_; }

 private:
  const Config arguments_;
  std::map<std::string, std::vector<Tensor>> tensors_;
  std::set<std::string> asked_;
};

// Calls a function with arguments and returns its results; shapes and numbers become tensors.
using OpAdapter = std::function<std::vector<Tensor>(OpArguments&)>;
using OpAdapters = std::map<std::string, OpAdapter>;

// The functions by name; those of keras.ops.image are "image.resize" and so on.
const OpAdapters& op_adapters();
// Its parts.
OpAdapters math_adapters();
OpAdapters reduction_adapters();
OpAdapters shape_adapters();
OpAdapters selection_adapters();
OpAdapters linalg_adapters();
OpAdapters nn_adapters();
OpAdapters image_adapters();

// Returns the sum of outputs * coef, whose gradients the records have.
Tensor weighted_sum(const std::vector<Tensor>& outputs, const Config& coef);

// Returns the name of the function in the table.
std::string op_name(const Config& record);

}  // namespace keel::conformance
