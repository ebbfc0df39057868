// What a step does to the elements of one variable.
//
// VariableUpdate writes an element as soon as its gradient is known. BufferedUpdate first takes all
// gradients, for steps that need the norm of a whole one, and then goes through the same stages.
// T is the variable's element type.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <keel/optimizers/step/step_plan.h>
#include <keel/optimizers/step/variable_memory.h>

namespace keel {

// Elements that one worker updates at a time.
inline constexpr int64_t kUpdateGrain = 16384;

// Runs of elements may come in any order. Not for several threads: each takes a copy. Plan, rule
// and elements outlive it. Where rows do not follow each other, only change_rows may be called.
template <class T>
class VariableUpdate {
 public:
  // Slots in the order of OptimizerSlots::slots.
  VariableUpdate(const StepPlan& plan, const UpdateRule& rule, const VariableMemory& memory,
                 bool decays);

  const StepPlan& plan() const { return *plan_; }

  // All stages of the elements [begin, begin + n).
  void operator()(int64_t begin, const T* gradient, int64_t n);

  // The stages, in order. Unscales a gradient and accumulates it; `out` becomes what to update by.
  void receive(int64_t begin, const T* gradient, int64_t n, T* out);
  // Clips by value, decays, updates. May write to the gradient.
  void change(int64_t begin, T* gradient, int64_t n);
  // The same for rows of dim elements: rows[i] by gradient[i * dim], ...
  void change_rows(std::span<const int64_t> rows, T* gradient, int64_t dim);
  // Of layerwise rules instead: clips, decays, and makes directions of gradients; later moves.
  void direct(int64_t begin, T* gradient, int64_t n);
  void move(int64_t begin, const T* direction, int64_t n, double ratio);
  // Counts the elements in the average.
  void average(int64_t begin, int64_t n);

  const T* values() const { return value_; }

 private:
  T* const* slots_at(int64_t begin);
  void clip_and_decay(int64_t begin, T* gradient, int64_t n);

  const StepPlan* plan_;
  const UpdateRule* rule_;
  T* value_;
  int64_t row_step_;
  T* average_ = nullptr;
  T* accumulator_ = nullptr;
  std::vector<T*> slots_, at_;  // of the rule
  double decay_ = 0;
  bool plain_;  // the rule is all
};

// What norms need of a variable, or of a replica's share of it.
struct SumsOfSquares {
  double values = 0, directions = 0;
};

template <class T>
class BufferedUpdate {
 public:
  explicit BufferedUpdate(VariableUpdate<T> update) : update_(std::move(update)) {}

  // Either all elements at once, by several workers, or run after run.
  void take_all(const T* gradient, int64_t size);
  void take(int64_t begin, const T* gradient, int64_t n);

  double squares();  // of the gradients
  void scale(double factor);
  SumsOfSquares direct();  // of layerwise rules
  void finish();           // of the others
  void move(double ratio);

 private:
  struct Run {
    int64_t begin = 0, n = 0;
    int64_t at = 0;  // in values_
  };
  // fn(update, number, run, gradient) for each run, by several workers.
  template <class Fn>
  void for_each(const Fn& fn);

  VariableUpdate<T> update_;
  std::vector<Run> runs_;
  std::vector<T> values_;
};

}  // namespace keel
