#include <keel/framework/kernels/update_rules/step_history.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <keel/framework/base/errors.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/framework/kernels/update_rules/smallest_root.h>
#include <keel/framework/whole_variable_rule.h>

namespace keel::kernels {
namespace {

using Move = ZeroGradientUpdate::Move;

constexpr int64_t kPiece = 256;         // elements that are updated together
constexpr int64_t kFewSteps = 4;        // so few steps are faster one by one
constexpr int64_t kCheckInterval = 32;  // steps between checks whether steps still change anything

const AdamRule* adam(const UpdateRule& rule) {
  if (const auto* engine = dynamic_cast<const EngineRule*>(&rule)) return adam(*engine->base);
  const auto* found = dynamic_cast<const AdamRule*>(&rule);
  return found != nullptr && !found->options.amsgrad ? found : nullptr;
}

void check(const std::string& caller, const UpdateRule& rule, const StepHistoryOptions& options) {
  if (dynamic_cast<const WholeVariableRule*>(&rule) != nullptr) {
    throw ValueError(caller,
                     ": lazy_rows requires an optimizer that updates each row on its own, but a "
                     "step of this one requires a whole variable; use LazyRows::kOff");
  }
  if (dynamic_cast<const LayerwiseRule*>(&rule) != nullptr) {
    throw ValueError(caller,
                     ": lazy_rows requires an optimizer that updates each row on its own, but this "
                     "one uses norms of whole variables; use LazyRows::kOff");
  }
  if (dynamic_cast<const CustomRule*>(&rule) != nullptr) {
    throw ValueError(caller,
                     ": lazy_rows requires a built-in update rule, received a custom computation; "
                     "use LazyRows::kOff");
  }
  if (!options.closed_form || ClosedForm::exists(zero_gradient_update<float>(rule)) ||
      zero_gradient_update<float>(rule).move == Move::kMemoryless) {
    return;
  }
  throw ValueError(caller,
                   ": lazy_rows closed_form is not supported because these options have no closed "
                   "form; use LazyRows::kReplay");
}

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == sizeof(float), uint32_t, uint64_t>;

// Conditions that are_all() checks on the bits of numbers. A number that violates the condition
// sets the top bit of `bad`, so the loop needs no branches.
enum class Kind { kFinite, kNotNegative, kPositive };
template <Kind kKind, class T>
bool are_all(const T* x, int64_t n) {
  using Bits = BitsOf<T>;
  constexpr auto kExponent = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  constexpr Bits kLastOfExponent = kExponent & (~kExponent + 1);
  Bits bad = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<Bits>(x[i]);
    bad |= (bits & kExponent) + kLastOfExponent;
    if (kKind != Kind::kFinite) bad |= bits;
    if (kKind == Kind::kPositive) bad |= bits - 1;
  }
  return bad >> (std::numeric_limits<Bits>::digits - 1) == 0;
}

// Replaces x by factor * x, rounded, `times` times. Adding zero, as the gradient term of the rule
// does, turns -0 into 0 and keeps the bits equal to the rule's.
template <class T>
void shrink(T* x, int64_t n, T factor, int64_t times) {
  while (times > 0) {
    const int64_t count = std::min(times, kCheckInterval);
    for (int64_t t = 1; t < count; ++t) {
      for (int64_t i = 0; i < n; ++i) x[i] = factor * x[i] + T{0};
    }
    bool changed = false;
    for (int64_t i = 0; i < n; ++i) {
      const T next = factor * x[i] + T{0};
      changed |= next != x[i];
      x[i] = next;
    }
    // Only zeros, and numbers so small that rounding restores them, are left.
    if (!changed) return;
    times -= count;
  }
}

template <class T>
struct Adam {
  explicit Adam(const AdamRuleOptions& o)
      : b1(static_cast<T>(o.beta_1)),
        b2(static_cast<T>(o.beta_2)),
        epsilon(static_cast<T>(o.sum_inside_sqrt ? o.epsilon * o.epsilon : o.epsilon)),
        inside(o.sum_inside_sqrt) {}

  // Equals UpdateRule::update() with zero gradient, bit for bit.
  template <bool kInside>
  void step(T* __restrict w, T* __restrict m, T* __restrict v, int64_t n, T alpha) const {
    const T smallest = smallest_root<T>();
    for (int64_t i = 0; i < n; ++i) {
      m[i] = b1 * m[i] + T{0};
      v[i] = b2 * v[i] + T{0};
      const T root = kInside ? std::sqrt(v[i] + epsilon) : std::sqrt(v[i]) + epsilon;
      w[i] -= alpha * m[i] / std::max(root, smallest);
    }
  }

  // Returns whether `steps` more steps with rates up to `rate` certainly do not move the weights,
  // which may decay to `kept` of their size in that time. Every decrement must be far below half a
  // unit in the last place. The bound on the root uses that v shrinks at most by the factor
  // b2^steps.
  bool keeps_weights(const T* w, const T* m, const T* v, int64_t n, double rate, double kept,
                     int64_t steps) const {
    const double least = std::numeric_limits<T>::epsilon() / 16;
    const double root_left = std::sqrt(math::pow(static_cast<double>(b2), steps));
    const double e = inside ? std::sqrt(static_cast<double>(epsilon)) : epsilon;
    bool out = true;
    for (int64_t i = 0; i < n; ++i) {
      const double root = (std::sqrt(static_cast<double>(v[i])) * root_left + e) / 4;
      out &= rate * std::abs(m[i]) <= std::abs(w[i]) * kept * least / 2 * root;
    }
    return out;
  }

  T b1, b2, epsilon;
  bool inside;
};

}  // namespace

StepHistory::StepHistory(const std::string& caller, std::shared_ptr<const UpdateRule> rule,
                         StepHistoryOptions options)
    : rule_(std::move(rule)),
      options_(options),
      slots_(rule_->slots().size()),
      shared_(rule_->shared_slots().size()),
      is_adam_(adam(*rule_) != nullptr) {
  check(caller, *rule_, options_);
  typed_[0].formula = zero_gradient_update<float>(*rule_);
  typed_[1].formula = zero_gradient_update<double>(*rule_);
  const std::vector<int>& zeros = typed_[0].formula.zero_at_rest;
  for (int slot = 0; slot < static_cast<int>(slots_); ++slot) {
    if (std::ranges::find(zeros, slot) == zeros.end()) others_at_rest_.push_back(slot);
  }
}

StepHistory::~StepHistory() = default;

void StepHistory::add(const Step& step, double decay) {
  records_.push_back(
      {.learning_rate = step.learning_rate, .decay = decay, .iteration = step.iteration});
  shared_values_.insert(shared_values_.end(), step.shared.begin(), step.shared.end());
  log_kept_.push_back(log_kept_.back() + math::log1p(-decay));
  needs_replay_ |= !(step.learning_rate >= 0) || !std::isfinite(step.learning_rate);
  needs_replay_ |= step.learning_rate == 0 && typed_[0].formula.move == Move::kMemoryless;
  if (is_adam_) {
    rates_.push_back(adam(*rule_)->alpha(step));
    largest_rate_ = std::max(largest_rate_, rates_.back());
  }
  for (Typed& typed : typed_) {
    for (const bool decays : {false, true}) add_to(typed, decays, std::ssize(records_) - 1);
  }
}

void StepHistory::clear() {
  first_step_ = size();
  records_.clear();
  shared_values_.clear();
  rates_.clear();
  log_kept_ = {0};
  largest_rate_ = 0;
  needs_replay_ = false;
  for (Typed& typed : typed_) {
    for (auto& closed : typed.closed) {
      if (closed != nullptr) closed = std::make_unique<ClosedForm>(typed.formula);
    }
  }
}

void StepHistory::add_to(Typed& typed, bool decays, int64_t number) {
  ClosedForm* form = typed.closed[decays].get();
  if (form == nullptr) return;
  const ZeroGradientUpdate::Pace pace =
      typed.formula.pace ? typed.formula.pace(step(number)) : ZeroGradientUpdate::Pace{};
  const double exact = decays ? records_[number].decay : 0;
  form->add(pace, &typed == &typed_[0] ? static_cast<float>(exact) : exact);
}

template <class T>
void StepHistory::expect(bool decays) {
  Typed& typed = typed_[sizeof(T) == sizeof(double)];
  if (!options_.closed_form || typed.closed[decays] != nullptr) return;
  typed.closed[decays] = std::make_unique<ClosedForm>(typed.formula);
  for (int64_t i = 0; i < std::ssize(records_); ++i) add_to(typed, decays, i);
}

Step StepHistory::step(int64_t number) const {
  const Record& record = records_[number];
  return {.learning_rate = record.learning_rate,
          .iteration = record.iteration,
          .shared = std::span(shared_values_).subspan(number * shared_, shared_)};
}

// Returns whether steps leave the slots of this row unchanged and do not move its weights, except
// by decay.
template <class T>
bool StepHistory::at_rest(T* const* slots, int64_t n) const {
  const ZeroGradientUpdate& formula = typed<T>().formula;
  if (!formula.rests) return false;
  BitsOf<T> all = 0;
  bool others_stay = true;
  for (const int slot : formula.zero_at_rest) {
    for (int64_t i = 0; i < n; ++i) all |= std::bit_cast<BitsOf<T>>(slots[slot][i]);
  }
  for (const int slot : others_at_rest_) {
    others_stay &= are_all<Kind::kNotNegative>(slots[slot], n);
  }
  return all == 0 && others_stay;
}

// Returns whether the last of many steps alone gives the result of all of them.
template <class T>
bool StepHistory::is_memoryless(const T* w, T* const* slots, int64_t n) const {
  const ZeroGradientUpdate& formula = typed<T>().formula;
  if (needs_replay_ || formula.move != Move::kMemoryless) return false;
  bool out = are_all<Kind::kFinite>(w, n) && are_all<Kind::kPositive>(slots[formula.spread], n);
  for (size_t slot = 0; slot < slots_; ++slot) out = out && are_all<Kind::kFinite>(slots[slot], n);
  return out;
}

template <class T>
void StepHistory::decay(T* w, int64_t n, int64_t number) const {
  if (records_[number].decay == 0) return;
  const T decay = static_cast<T>(records_[number].decay);
  for (int64_t i = 0; i < n; ++i) w[i] -= decay * w[i];
}

template <class T>
void StepHistory::catch_up(T* w, T* const* slots, int64_t n, int64_t from, int64_t to,
                           bool decays) const {
  if (from >= to) return;
  from -= first_step_;
  to -= first_step_;
  if (n <= kPiece) return catch_up_piece(w, slots, n, from, to, decays);
  std::vector<T*> at(slots, slots + slots_);
  for (int64_t i = 0; i < n; i += kPiece) {
    const int64_t count = std::min(kPiece, n - i);
    catch_up_piece(w + i, at.data(), count, from, to, decays);
    for (T*& slot : at) slot += count;
  }
}

template <class T>
void StepHistory::prefetch(int64_t steps, bool decays) const {
  const ClosedForm* closed = typed<T>().closed[decays].get();
  if (closed != nullptr && steps >= first_step_ && steps < size())
    closed->prefetch(steps - first_step_);
}

template <class T>
void StepHistory::catch_up_rows(const StaleRows<T>& stale, bool decays) const {
  thread_local std::vector<size_t> left;
  left.clear();
  const ClosedForm* closed = needs_replay_ ? nullptr : typed<T>().closed[decays].get();
  if (closed != nullptr && typed<T>().formula.move == Move::kDivides) {
    closed->catch_up_rows(stale, first_step_, left);
  } else {
    for (size_t i = 0; i < stale.rows.size(); ++i) left.push_back(i);
  }
  std::array<T*, kMostSlots> slots;
  for (const size_t i : left) {
    const auto [row, steps] = stale.rows[i];
    const int64_t at = row * stale.row_step;
    for (size_t s = 0; s < stale.slots.size(); ++s) slots[s] = stale.slots[s] + at;
    catch_up(stale.values + at, slots.data(), stale.dim, steps, size(), decays);
  }
}

template <class T>
void StepHistory::catch_up_piece(T* w, T* const* slots, int64_t n, int64_t from, int64_t to,
                                 bool decays) const {
  // Tries the fast paths first: the last step alone, rows at rest, the closed form. Otherwise
  // replays step by step.
  const Typed& of = typed<T>();
  const bool formulas = !needs_replay_;
  if (to - from > 1 && is_memoryless(w, slots, n)) from = to - 1;
  const bool many = to - from > kFewSteps;
  if (formulas && many && at_rest(slots, n)) {
    const bool at_once =
        of.closed[decays] != nullptr && of.closed[decays]->catch_up(w, slots, n, from, to);
    for (int64_t i = from; decays && !at_once && i < to; ++i) decay(w, n, i);
    // One step has the effect of many here: it may turn -0 into 0.
    if (std::any_of(w, w + n, [](T x) { return x == 0; })) {
      replay(w, slots, n, to - 1, to, false);
    }
    return;
  }
  if (formulas && many && of.closed[decays] != nullptr &&
      of.closed[decays]->catch_up(w, slots, n, from, to)) {
    return;
  }
  is_adam_&& formulas ? replay_adam(w, slots, n, from, to, decays)
                      : replay(w, slots, n, from, to, decays);
}

template <class T>
void StepHistory::replay(T* w, T* const* slots, int64_t n, int64_t from, int64_t to,
                         bool decays) const {
  static constexpr std::array<T, kPiece> kZeros = {};
  for (int64_t i = from; i < to; ++i) {
    if (decays) decay(w, n, i);
    rule_->update(w, kZeros.data(), slots, n, step(i));
  }
}

template <class T>
void StepHistory::replay_adam(T* w, T* const* slots, int64_t n, int64_t from, int64_t to,
                              bool decays) const {
  const Adam<T> adam_of(adam(*rule_)->options);
  T* m = slots[0];
  T* v = slots[1];
  for (int64_t i = from; i < to; ++i) {
    const double kept = decays ? math::exp(log_kept_[to] - log_kept_[i]) : 1;
    if ((i - from) % kCheckInterval == kCheckInterval - 1 &&
        adam_of.keeps_weights(w, m, v, n, largest_rate_, kept, to - i)) {
      shrink(m, n, adam_of.b1, to - i);
      shrink(v, n, adam_of.b2, to - i);
      for (; decays && i < to; ++i) decay(w, n, i);
      return;
    }
    if (decays) decay(w, n, i);
    const T alpha = static_cast<T>(rates_[i]);
    adam_of.inside ? adam_of.template step<true>(w, m, v, n, alpha)
                   : adam_of.template step<false>(w, m, v, n, alpha);
  }
}

template void StepHistory::expect<float>(bool);
template void StepHistory::expect<double>(bool);
template void StepHistory::prefetch<float>(int64_t, bool) const;
template void StepHistory::prefetch<double>(int64_t, bool) const;
template void StepHistory::catch_up_rows(const StaleRows<float>&, bool) const;
template void StepHistory::catch_up_rows(const StaleRows<double>&, bool) const;
template void StepHistory::catch_up(float*, float* const*, int64_t, int64_t, int64_t, bool) const;
template void StepHistory::catch_up(double*, double* const*, int64_t, int64_t, int64_t, bool) const;

}  // namespace keel::kernels
