// VariableSlots and WholeVariableRule: update rules that depend on the shape or the name of a
// variable.
//
// UpdateRule updates any run of elements, and all its slots have the shape of the variable. Some
// optimizers need more: Adafactor keeps sums of rows and columns, and Muon orthogonalizes a matrix.
// Their rules receive a whole variable at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/framework/base/shape.h>
#include <keel/framework/update_rule.h>

namespace keel {

// The properties of a variable that a rule may depend on.
struct VariableInfo {
  Shape shape = {};       // shape of the value
  std::string path = {};  // Variable::path, for example "dense/kernel"
};

// The slots of a variable, for rules whose slots do not all have the shape of the variable or a
// constant initial value. A rule derives from it in addition to UpdateRule.
class VariableSlots {
 public:
  virtual ~VariableSlots() = default;
  // Returns the shape of slot `slot` of UpdateRule::slots(), or nothing if the variable does not
  // have this slot.
  virtual std::optional<Shape> slot_shape(size_t slot, const VariableInfo& variable) const;
  // Returns true if the slot starts with the value of the variable instead of Slot::initial. Its
  // shape must then be that of the variable.
  virtual bool starts_with_variable(size_t slot) const;
};

// A rule whose step needs all elements of a variable and of its gradient at once. Sparse gradients
// are made dense. With several replicas, one replica of each process updates the variable.
class WholeVariableRule : public UpdateRule, public VariableSlots {
 public:
  bool moves_without_gradient() const override { return true; }
  // Returns the weight decay of this variable, given the option of the optimizer.
  virtual double weight_decay(const VariableInfo& variable, double option) const;
  // Updates the variable and its slots, and may overwrite the gradient. slots[i] points to the
  // elements of the i-th slot, and is unspecified if the variable does not have it.
  virtual void update_variable(float* value, float* gradient, float* const* slots,
                               const VariableInfo& variable, const Step& step) const = 0;
  virtual void update_variable(double* value, double* gradient, double* const* slots,
                               const VariableInfo& variable, const Step& step) const = 0;
  // Throw RuntimeError: n elements are not a variable.
  void update(float*, const float*, float* const*, int64_t, const Step&) const final;
  void update(double*, const double*, double* const*, int64_t, const Step&) const final;
};

}  // namespace keel
