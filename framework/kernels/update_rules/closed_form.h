// ClosedForm: applies many steps with zero gradient at once, in time that does not depend on their
// number.
//
// With m' = r m, s' = q s and w' = (1 - d) w - a m' / (s' + c e), where a, c and d differ from step
// to step, the steps from i on change w by the sum over j of a_j r^j m / (q^j s + c_j e). Such sums
// over all steps so far are kept for every i. A new step adds a term to the sums whose terms have
// not vanished yet, which are those of the last few hundred i. The quotient is expanded as a power
// series in e / (s + e).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <keel/framework/base/internal/prefetch.h>
#include <keel/framework/kernels/update_rules/zero_gradient_update.h>

namespace keel::kernels {

constexpr size_t kMostSlots = 8;  // maximum number of slots of a table with rows that lag behind

// A row of a table that has missed steps.
struct StaleRow {
  int64_t row = 0;
  int32_t steps = 0;  // number of steps applied to the row
};

// Rows of a table that have had different numbers of steps. Row r is the `dim` elements from offset
// r * row_step in `values` and in each slot.
template <class T>
struct StaleRows {
  T* values;
  std::span<T* const> slots;  // at most kMostSlots
  int64_t dim, row_step;
  std::span<const StaleRow> rows;
};

// The closed form of a rule's steps with zero gradient. Const functions may run concurrently; add()
// needs exclusive access.
class ClosedForm {
 public:
  // Returns whether every step of the rule has a closed form. The result is also true for
  // Move::kMemoryless, for which catch_up() returns false: its last step alone gives the result.
  static bool exists(const ZeroGradientUpdate& formula);

  // Requires exists(formula).
  explicit ClosedForm(const ZeroGradientUpdate& formula);

  // Appends the next step, which first subtracts `decay` times each weight from it.
  void add(const ZeroGradientUpdate::Pace& pace, double decay);
  // The number of steps so far.
  int64_t size() const { return static_cast<int64_t>(steps_.size()); }

  // Prefetches the memory needed by rows that have had all steps before `from`.
  void prefetch(int64_t from) const {
    keel::prefetch(steps_.data() + from);
    keel::prefetch(shrunk_.data() + (size() - from) * std::ssize(formula_.shrinking));
  }

  // Applies the steps [from, to) to a row of n elements. Returns false and changes nothing if these
  // steps have no closed form.
  template <class T>
  bool catch_up(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const;
  // Applies all steps that many rows have missed. StaleRow::steps counts from `first`, the number
  // of this object's first step. Appends the index in stale.rows of each row that it does not
  // update to `left`.
  template <class T>
  void catch_up_rows(const StaleRows<T>& stale, int64_t first, std::vector<size_t>& left) const;

 private:
  static constexpr int kTerms = 6;  // terms of the series; the last one bounds the error
  using Sums = std::array<double, kTerms>;
  // The data for rows that have had all steps before this one; it fills one cache line.
  struct alignas(64) FromStep {
    Sums sums = {};  // over this step and later ones, until their terms vanish
    ZeroGradientUpdate::Pace pace = {};
  };

  double kept(int64_t from, int64_t to) const;  // factor of weights that only decay
  double kept_of_sums(int64_t from) const;      // factor since the sums were complete
  // The factor of slot formula_.shrinking[k] after `steps` steps.
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
  double ratio_ = 1, growth_ = 1;  // factors per step of m and of 1 / root(spread)
  int64_t window_ = 0;             // steps after which terms have vanished; 0: no sums are kept
  std::vector<double> powers_;     // (ratio growth)^j
  std::vector<double> growths_;    // growth^j
  std::vector<double> shrunk_;     // factors of the shrinking slots, by number of steps
  bool divides_moments_ = false;
  bool decays_ = false;

  std::vector<FromStep> steps_;
  std::vector<double> decays_by_step_;
  std::vector<double> log_kept_ = {0};  // log of the decay factor of the steps before
  // The distance by which the steps before have moved weights with a positive m, for Move::kSigns.
  std::vector<double> signs_ = {0};
};

}  // namespace keel::kernels
