// StepHistory: the steps of an optimizer, remembered for rows that missed some of them.
//
// A step that moves every row of a table moves those without gradient by a rule that only depends
// on the row and the step. Such rows may be left behind, and be given the steps that they missed
// when somebody looks.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <keel/framework/kernels/update_rules/closed_form.h>
#include <keel/framework/kernels/update_rules/update_rule.h>

namespace keel::kernels {

struct SkippedStepsOptions {
  // Makes many steps in one (ClosedForm). If not, each of them is made as UpdateRule::update makes
  // it, bit for bit, in less time where a step is known to change nothing.
  bool closed_form = false;
};

// Thread safe but for add and expect.
class StepHistory {
 public:
  // ValueError, beginning with `caller`, for rules whose steps need more than a row (LayerwiseRule)
  // or that may do anything (CustomRule); with closed_form also for those without closed form.
  StepHistory(const std::string& caller, std::shared_ptr<const UpdateRule> rule,
              SkippedStepsOptions options = {});
  ~StepHistory();

  // The next step; `decay` times a weight is what the step takes of it first, where weights decay.
  void add(const Step& step, double decay);
  // Steps so far; they are numbered from 0 on.
  int64_t size() const { return forgotten_ + static_cast<int64_t>(records_.size()); }
  // Drops what is known of them, where nobody has missed one.
  void forget();

  // Must have been called for the dtype and kind of a row before it catches up.
  template <class T>
  void expect(bool decays);

  // Makes steps [from, to) of a row of n elements, with gradient zero.
  template <class T>
  void catch_up(T* w, T* const* slots, int64_t n, int64_t from, int64_t to, bool decays) const;
  // Asks for the memory that rows need which have had so many steps.
  template <class T>
  void ask_for(int64_t had, bool decays) const;
  // Makes all steps that rows have not had.
  template <class T>
  void catch_up_rows(const RowsBehind<T>& behind, bool decays) const;

 private:
  struct Record {
    double learning_rate = 0, decay = 0;
    int64_t iteration = 0;
  };
  // What is different for float32 and float64.
  struct Typed {
    ZeroGradientUpdate formula = {};
    std::unique_ptr<ClosedForm> closed[2];  // without and with decay
  };
  template <class T>
  const Typed& typed() const {
    return typed_[sizeof(T) == sizeof(double)];
  }

  // In what follows steps are numbered from the first one that is known.
  Step step(int64_t number) const;
  void add_to(Typed& typed, bool decays, int64_t number);
  template <class T>
  void catch_up_piece(T* w, T* const* slots, int64_t n, int64_t from, int64_t to,
                      bool decays) const;
  template <class T>
  bool at_rest(T* const* slots, int64_t n) const;
  template <class T>
  bool forgets(const T* w, T* const* slots, int64_t n) const;
  template <class T>
  void decay(T* w, int64_t n, int64_t number) const;
  template <class T>
  void replay(T* w, T* const* slots, int64_t n, int64_t from, int64_t to, bool decays) const;
  template <class T>
  void replay_adam(T* w, T* const* slots, int64_t n, int64_t from, int64_t to, bool decays) const;

  const std::shared_ptr<const UpdateRule> rule_;
  const SkippedStepsOptions options_;
  const size_t slots_;               // of a row
  std::vector<int> others_at_rest_;  // slots that need not be zero
  const size_t shared_;              // values of a step
  const bool is_adam_;
  int64_t forgotten_ = 0;
  std::vector<Record> records_;
  std::vector<double> shared_values_;   // shared_ of each step
  std::vector<double> rates_;           // of Adam
  std::vector<double> log_kept_ = {0};  // of weights by decay, in the steps before
  double largest_rate_ = 0;             // of those
  bool odd_ = false;                    // a rate is not a positive number: no formula holds
  std::array<Typed, 2> typed_;
};

}  // namespace keel::kernels
