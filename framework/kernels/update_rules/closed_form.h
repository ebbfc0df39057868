// ClosedForm: many steps without gradient made in one, in a time that does not depend on their
// number.
//
// With m' = r m, s' = q s and w' = (1 - d) w - a m' / (s' + c e), where a, c and d differ from step
// to step, the steps from i on move w by a sum over j of a_j r^j m / (q^j s + c_j e). Sums over all
// steps so far are kept for every i: a step adds a term to those whose terms have not vanished yet,
// which are the last few hundred. The quotient is a power series in e / (s + e).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <keel/framework/kernels/update_rules/zero_gradient_update.h>

namespace keel::kernels {

constexpr size_t kMostSlots = 8;  // of a table whose rows are behind

struct RowBehind {
  int64_t row = 0;
  int32_t had = 0;  // steps
};

// Rows of a table that have had different numbers of steps: row r is the `dim` elements from
// r * row_step on, of the values and of each slot.
template <class T>
struct RowsBehind {
  T* values;
  std::span<T* const> slots;  // at most kMostSlots
  int64_t dim, row_step;
  std::span<const RowBehind> rows;
};

// Thread safe but for add.
class ClosedForm {
 public:
  // Whether all of a rule's steps have one.
  static bool exists(const ZeroGradientUpdate& formula);

  explicit ClosedForm(const ZeroGradientUpdate& formula);

  // The next step. `decay` is what it first takes of each weight, times the weight.
  void add(const ZeroGradientUpdate::Pace& pace, double decay);
  int64_t size() const { return static_cast<int64_t>(steps_.size()); }

  // Asks for the memory that rows need which have had all steps before `from`.
  void ask_for(int64_t from) const {
    __builtin_prefetch(steps_.data() + from);
    __builtin_prefetch(shrunk_.data() + (size() - from) * std::ssize(formula_.shrinking));
  }

  // Steps [from, to) of a row of n elements. False if these have none, and then does nothing.
  template <class T>
  bool catch_up(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const;
  // The same of many rows, up to the last step; what they had counts from `first` on. Those that it
  // does not make are added to `left`, as numbers in the list of rows.
  template <class T>
  void catch_up_rows(const RowsBehind<T>& behind, int64_t first, std::vector<size_t>& left) const;

 private:
  static constexpr int kTerms = 6;  // of the series; the last one bounds the error
  using Sums = std::array<double, kTerms>;
  // What a row needs that has had all steps before this one: a line of the cache.
  struct alignas(64) FromStep {
    Sums sums = {};  // of this step and those after it, until their terms have vanished
    ZeroGradientUpdate::Pace pace = {};
  };

  double kept(int64_t from, int64_t to) const;  // of weights that only decay
  double kept_of_sums(int64_t from) const;      // since they were complete
  // Of slot formula_.shrinking[k], after so many steps.
  double left_of(size_t k, int64_t steps) const {
    return shrunk_[steps * formula_.shrinking.size() + k];
  }
  void add_to_sums(const ZeroGradientUpdate::Pace& pace, double decay);
  double following(int64_t from, int64_t to) const;
  template <class T>
  void follow(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const;
  template <class T>
  void divide(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const;
  template <int64_t kDim, class T>
  bool divide_by_series(T* w, T* m, T* spread, int64_t n, int64_t from, double keeps) const;
  template <class T>
  void divide_step_by_step(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const;
  template <class T>
  void sign(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const;
  template <class T>
  void shrink(T* const* slots, int64_t n, int64_t steps) const;

  const ZeroGradientUpdate formula_;
  double ratio_ = 1, growth_ = 1;  // of m; of 1 / root(spread)
  int64_t window_ = 0;             // steps after which terms have vanished; 0: there are no sums
  std::vector<double> powers_;     // (ratio growth)^j
  std::vector<double> growths_;    // growth^j
  std::vector<double> shrunk_;     // by number of steps and slot that shrinks
  bool divides_moments_ = false;
  bool decays_ = false;

  std::vector<FromStep> steps_;
  std::vector<double> decays_by_step_;
  std::vector<double> log_kept_ = {0};  // of steps before
  std::vector<double> signs_ = {0};     // what steps before have taken of weights, by signs
};

}  // namespace keel::kernels
