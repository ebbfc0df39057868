// UpdateRule: the arithmetic of an optimizer on each element of a parameter. CustomRow: the
// arguments of a user's update of one row of an embedding table.
//
// Dense variables, sparse rows of a variable and shards of an embedding engine are updated by the
// same rule, so their results agree bit for bit. Any number of threads may use one rule object. An
// optimizer of your own passes its rule to the constructor of Optimizer, or derives its class from
// its options with RuleOptimizer (optimizers/rule_optimizer.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/framework/base/shared_function.h>

namespace keel {

// State that a rule keeps for each element.
struct Slot {
  std::string name;    // "accumulator", "momentum", ...; used as the name in files
  double initial = 0;  // the value before the first step
  // Determines the position in Keras's files. They store one group of slots after the other; within
  // a group, variable by variable, with the slots of a variable next to each other.
  int group = 0;
  // True for one value per row of an embedding table instead of one per element. Only rules of
  // embedding engines have such slots.
  bool per_row = false;
};

// The values that change from step to step.
struct Step {
  double learning_rate = 0;                      // rate of this step
  int64_t iteration = 0;                         // number of completed steps, from 0
  std::span<const double> hyperparameters = {};  // for custom rules
  std::span<const double> shared = {};           // values of shared_slots() in this step
};

// Rows of a table that are updated one after the other. Row i is the `dim` elements from offset
// rows[i] * row_step in `values` and in each slot.
struct TableRows {
  float* values;                  // the weights of row 0
  float* const* slots;            // one pointer for each slot, to row 0
  int64_t dim;                    // elements of a row
  int64_t row_step;               // elements from one row to the next
  std::span<const int64_t> rows;  // the numbers of the rows
};

// The interface of all update rules.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  // The state that the rule keeps for each element; none by default.
  virtual std::vector<Slot> slots() const { return {}; }
  // Returns true if a zero gradient may still change an element or its slots. Leaving out the rows
  // that a sparse gradient does not contain is then a different optimizer.
  virtual bool moves_without_gradient() const { return false; }
  // State that all elements of all variables share. step_shared() updates it once per step, before
  // the elements are updated.
  virtual std::vector<Slot> shared_slots() const { return {}; }
  virtual void step_shared(std::span<double> /*shared*/, const Step&) const {}
  // Updates n elements in place. slots[i] points to n elements of the i-th slot of slots().
  virtual void update(float* value, const float* gradient, float* const* slots, int64_t n,
                      const Step& step) const = 0;
  virtual void update(double* value, const double* gradient, double* const* slots, int64_t n,
                      const Step& step) const = 0;
  // Updates row i of the list with the gradient at gradients + i * dim. The result has the bits of
  // update() for each row.
  virtual void update_rows(const TableRows& table, const float* gradients, const Step& step) const;
};

// A rule whose step has its own length in each variable: w -= ratio lr u, where u is computed
// element by element from the gradient, and ratio is |w| / |u| over the whole variable.
class LayerwiseRule : public UpdateRule {
 public:
  bool moves_without_gradient() const override { return true; }
  // Updates the slots of n elements and replaces their gradients by u.
  virtual void direct(float* gradient, float* const* slots, int64_t n, const Step& step) const = 0;
  virtual void direct(double* gradient, double* const* slots, int64_t n,
                      const Step& step) const = 0;
  // Returns |w| / |u|, given the sums of squares; 1 if one of them is 0.
  static double ratio(double squares_of_w, double squares_of_u);
  // The n elements must be a whole variable.
  void update(float*, const float*, float* const*, int64_t, const Step&) const final;
  void update(double*, const double*, double* const*, int64_t, const Step&) const final;
};

// One row of a table, its slots and its gradient. The computation updates `row` and `slots` in
// place.
struct CustomRow {
  std::span<const float> gradient;  // summed over the batch, or of one occurrence of the row
  std::span<float> row;             // the weights
  std::span<float* const> slots;    // row.size() elements each
  double learning_rate = 0;         // rate of this step
  std::span<const double> hyperparameters;  // the values of tpu::CustomOptimizer::hyperparameters

  // Returns slot i.
  std::span<float> slot(size_t i) const { return {slots[i], row.size()}; }
};

// A user's update computation. It must depend on its argument alone: several threads update rows,
// in any order.
using CustomComputation = SharedFunction<void(const CustomRow&)>;

}  // namespace keel
