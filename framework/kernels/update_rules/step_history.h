// StepHistory: records the steps of an optimizer for rows that miss some of them.
//
// A step that updates every row of a table changes a row without gradient by a rule that depends
// only on the row and the step. Such rows can be skipped. They catch up with the missed steps when
// they are read.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/closed_form.h>

namespace keel::kernels {

// Options of StepHistory: the method by which missed steps are applied.
struct StepHistoryOptions {
  // If true, applies many steps at once (ClosedForm). If false, applies each step with the bits of
  // UpdateRule::update(), but skips work where a step is known to change nothing.
  bool closed_form = false;
};

// The recorded steps of one optimizer. Const functions may run concurrently; add(), clear() and
// expect() need exclusive access.
class StepHistory {
 public:
  // Throws ValueError, with a message that begins with `caller`, if a step of the rule needs more
  // than one row (LayerwiseRule) or is arbitrary code (CustomRule). With `closed_form` it also
  // throws for rules that have no closed form.
  StepHistory(const std::string& caller, std::shared_ptr<const UpdateRule> rule,
              StepHistoryOptions options = {});
  ~StepHistory();

  // Appends a step. It first subtracts `decay` times the weight from every weight that decays.
  void add(const Step& step, double decay);
  // The number of steps so far. Steps are numbered from 0.
  int64_t size() const { return first_step_ + static_cast<int64_t>(records_.size()); }
  // Drops the records of all steps; step numbers continue. Every row must have had all steps.
  void clear();

  // Prepares for rows of dtype T with or without weight decay. Must be called before a row of this
  // kind catches up.
  template <class T>
  void expect(bool decays);

  // Applies the steps [from, to) to a row of n elements, with zero gradient.
  template <class T>
  void catch_up(T* w, T* const* slots, int64_t n, int64_t from, int64_t to, bool decays) const;
  // Prefetches the memory needed by rows that have had `steps` steps.
  template <class T>
  void prefetch(int64_t steps, bool decays) const;
  // Applies to each row all steps that it has missed.
  template <class T>
  void catch_up_rows(const StaleRows<T>& stale, bool decays) const;

 private:
  // The stored data of a step.
  struct Record {
    double learning_rate = 0, decay = 0;
    int64_t iteration = 0;
  };
  // The data that depends on the dtype (float32 or float64).
  struct Typed {
    ZeroGradientUpdate formula = {};
    std::unique_ptr<ClosedForm> closed[2];  // index 0: without decay, index 1: with decay
  };
  template <class T>
  const Typed& typed() const {
    return typed_[sizeof(T) == sizeof(double)];
  }

  // The functions below number steps from the first recorded one.
  Step step(int64_t number) const;
  void add_to(Typed& typed, bool decays, int64_t number);
  template <class T>
  void catch_up_piece(T* w, T* const* slots, int64_t n, int64_t from, int64_t to,
                      bool decays) const;
  template <class T>
  bool at_rest(T* const* slots, int64_t n) const;
  template <class T>
  bool is_memoryless(const T* w, T* const* slots, int64_t n) const;
  template <class T>
  void decay(T* w, int64_t n, int64_t number) const;
  template <class T>
  void replay(T* w, T* const* slots, int64_t n, int64_t from, int64_t to, bool decays) const;
  template <class T>
  void replay_adam(T* w, T* const* slots, int64_t n, int64_t from, int64_t to, bool decays) const;

  const std::shared_ptr<const UpdateRule> rule_;
  const StepHistoryOptions options_;
  const size_t slots_;               // slots per row
  std::vector<int> others_at_rest_;  // slots that may be nonzero in a row at rest
  const size_t shared_;              // shared values per step
  const bool is_adam_;
  int64_t first_step_ = 0;
  std::vector<Record> records_;
  std::vector<double> shared_values_;   // `shared_` values per step
  std::vector<double> rates_;           // AdamRule::alpha() of each step
  std::vector<double> log_kept_ = {0};  // log of the decay factor of the steps before each step
  double largest_rate_ = 0;             // maximum of rates_
  // A recorded learning rate is negative, not finite, or 0 with Move::kMemoryless: no formula
  // holds.
  bool needs_replay_ = false;
  std::array<Typed, 2> typed_;
};

}  // namespace keel::kernels
