// The update of the elements of one variable in a step.
//
// VariableUpdate writes an element as soon as its gradient is known. BufferedUpdate first stores
// all gradients, for steps that need the norm of a whole gradient, and then applies the same
// stages. T is the variable's element type.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/framework/whole_variable_rule.h>
#include <keel/optimizers/step/step_plan.h>
#include <keel/optimizers/step/variable_memory.h>

namespace keel {

// Number of elements that one worker updates at a time.
inline constexpr int64_t kUpdateGrain = 16384;

// Updates runs of elements, in any order. Not thread safe: each thread uses its own copy. The plan,
// the rule and the elements must outlive it. If the rows are not contiguous, only change_rows() may
// be called.
template <class T>
class VariableUpdate {
 public:
  // The slots of `memory` are in the order of OptimizerSlots::slots. A weight_decay of 0 turns the
  // stage off.
  VariableUpdate(const StepPlan& plan, const UpdateRule& rule, const VariableMemory& memory,
                 double weight_decay);

  const StepPlan& plan() const { return *plan_; }

  // Performs all stages for elements [begin, begin + n).
  void operator()(int64_t begin, const T* gradient, int64_t n);

  // The stages, in order. The first unscales and accumulates a gradient and writes to `out` the
  // gradient to update by.
  void receive(int64_t begin, const T* gradient, int64_t n, T* out);
  // Clips by value, decays and updates. May overwrite the gradient.
  void change(int64_t begin, T* gradient, int64_t n);
  // Does the same for rows of `dim` elements: row rows[i] by gradient[i * dim], ...
  void change_rows(std::span<const int64_t> rows, T* gradient, int64_t dim);
  // direct() and move() replace change() for layerwise rules. direct() clips, decays and turns the
  // gradient into a direction; move() later applies the direction.
  void direct(int64_t begin, T* gradient, int64_t n);
  void move(int64_t begin, const T* direction, int64_t n, double ratio);
  // clip_and_decay() and update_variable() replace change() for rules that need whole variables.
  void clip_and_decay(int64_t begin, T* gradient, int64_t n);
  void update_variable(T* gradient, const VariableInfo& variable);
  // Updates the averages of the elements.
  void average(int64_t begin, int64_t n);

  const T* values() const { return value_; }

 private:
  T* const* slots_at(int64_t begin);

  const StepPlan* plan_;
  const UpdateRule* rule_;
  T* value_;
  int64_t row_step_;
  T* average_ = nullptr;
  T* accumulator_ = nullptr;
  std::vector<T*> slots_, at_;  // slots of the rule
  double decay_;                // the factor of a weight that is subtracted from it
  RowRegularization regularization_;
  bool plain_;  // true if the step consists of the rule's update only
};

// Sums of squares from which norms are computed, of a variable or of a replica's shard of it.
struct SumsOfSquares {
  double values = 0, directions = 0;
};

// Stores the gradients of one variable until the norms are known. Call take_all() or take(), then
// squares() and scale(), then direct() and move(), finish_variable() or finish().
template <class T>
class BufferedUpdate {
 public:
  explicit BufferedUpdate(VariableUpdate<T> update) : update_(std::move(update)) {}

  // Store the gradient: either all elements at once, with several workers, or run by run.
  void take_all(const T* gradient, int64_t size);
  void take(int64_t begin, const T* gradient, int64_t n);

  double squares();  // squares of the gradients
  void scale(double factor);
  SumsOfSquares direct();  // for layerwise rules
  // For rules that need whole variables. take_all() must have stored the gradient.
  void finish_variable(const VariableInfo& variable);
  void finish();   // for other rules
  void average();  // if the step does not update the variable
  void move(double ratio);

 private:
  struct Run {
    int64_t begin = 0, n = 0;
    int64_t at = 0;  // position in values_
  };
  // Calls fn(update, number, run, gradient) for each run, with several workers.
  template <class Fn>
  void for_each(const Fn& fn);

  VariableUpdate<T> update_;
  std::vector<Run> runs_;
  std::vector<T> values_;
};

}  // namespace keel
