#include <keel/optimizers/step/variable_update.h>

#include <algorithm>
#include <array>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/update_rules/row_regularization.h>
#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel {
namespace {

constexpr int64_t kBuffer = 1024;  // elements; small enough for the L1 cache

const LayerwiseRule& layerwise(const UpdateRule& rule) {
  return dynamic_cast<const LayerwiseRule&>(rule);
}

}  // namespace

template <class T>
VariableUpdate<T>::VariableUpdate(const StepPlan& plan, const UpdateRule& rule,
                                  const VariableMemory& memory, double weight_decay)
    : plan_(&plan),
      rule_(&rule),
      value_(static_cast<T*>(memory.values)),
      row_step_(memory.row_step),
      decay_(weight_decay * plan.step.learning_rate),
      regularization_(memory.regularization) {
  // Slots of the rule are first, then the average, then the accumulator (Optimizer::slot_specs).
  for (void* const slot : memory.slots) slots_.push_back(static_cast<T*>(slot));
  if (plan.accumulates()) {
    accumulator_ = slots_.back();
    slots_.pop_back();
  }
  if (plan.averages) {
    average_ = slots_.back();
    slots_.pop_back();
  }
  at_.resize(slots_.size());
  plain_ = plan.loss_scale == 1 && !plan.accumulates() && plan.clipvalue == 0 && decay_ == 0 &&
           regularization_.l2 == 0 && !plan.averages;
}

template <class T>
T* const* VariableUpdate<T>::slots_at(int64_t begin) {
  for (size_t s = 0; s < slots_.size(); ++s) at_[s] = slots_[s] + begin;
  return at_.data();
}

template <class T>
void VariableUpdate<T>::operator()(int64_t begin, const T* gradient, int64_t n) {
  // The common case: the rule reads the gradient in place, without a copy to the buffer.
  if (plain_) {
    rule_->update(value_ + begin, gradient, slots_at(begin), n, plan_->step);
    return;
  }
  std::array<T, kBuffer> buffer;
  // All stages of a piece run while it is in the L1 cache.
  for (int64_t i = 0; i < n; i += kBuffer) {
    const int64_t count = std::min(kBuffer, n - i);
    receive(begin + i, gradient + i, count, buffer.data());
    if (plan_->updates) change(begin + i, buffer.data(), count);
    average(begin + i, count);
  }
}

template <class T>
void VariableUpdate<T>::receive(int64_t begin, const T* gradient, int64_t n, T* out) {
  const T scale = static_cast<T>(plan_->loss_scale);
  if (plan_->loss_scale == 1) {
    std::copy_n(gradient, n, out);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = gradient[i] / scale;
  }
  if (!plan_->accumulates()) return;
  T* sum = accumulator_ + begin;
  if (!plan_->updates) {
    for (int64_t i = 0; i < n; ++i) sum[i] += out[i];
    return;
  }
  // The last call of a cycle takes the mean and clears the accumulator for the next cycle.
  const T steps = static_cast<T>(plan_->accumulation_steps);
  for (int64_t i = 0; i < n; ++i) {
    out[i] = (out[i] + sum[i]) / steps;
    sum[i] = 0;
  }
}

template <class T>
void VariableUpdate<T>::clip_and_decay(int64_t begin, T* gradient, int64_t n) {
  if (plan_->clipvalue > 0) {
    const T bound = static_cast<T>(plan_->clipvalue);
    for (int64_t i = 0; i < n; ++i) gradient[i] = std::clamp(gradient[i], -bound, bound);
  }
  if (regularization_.l2 != 0) {
    kernels::add_l2_gradient(value_ + begin, n, regularization_.l2, gradient);
  }
  // Decoupled from the gradient (Loshchilov and Hutter 2019): the rule's moments do not see it.
  if (decay_ != 0) {
    const T decay = static_cast<T>(decay_);
    T* w = value_ + begin;
    for (int64_t i = 0; i < n; ++i) w[i] -= decay * w[i];
  }
}

template <class T>
void VariableUpdate<T>::change(int64_t begin, T* gradient, int64_t n) {
  clip_and_decay(begin, gradient, n);
  rule_->update(value_ + begin, gradient, slots_at(begin), n, plan_->step);
}

template <class T>
void VariableUpdate<T>::change_rows(std::span<const int64_t> rows, T* gradient, int64_t dim) {
  if (plan_->clipvalue > 0 || decay_ != 0 || regularization_.l2 != 0) {
    T* at = gradient;
    for (const int64_t row : rows) {
      clip_and_decay(row * row_step_, at, dim);
      at += dim;
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    // update_rows() computes what depends only on the step once for all rows.
    rule_->update_rows(
        {.values = value_, .slots = slots_.data(), .dim = dim, .row_step = row_step_, .rows = rows},
        gradient, plan_->step);
  } else {
    for (const int64_t row : rows) {
      const int64_t at = row * row_step_;
      rule_->update(value_ + at, gradient, slots_at(at), dim, plan_->step);
      gradient += dim;
    }
  }
  if (regularization_.max_norm == 0) return;
  for (const int64_t row : rows) {
    kernels::limit_norm(value_ + row * row_step_, dim, regularization_.max_norm);
  }
}

template <class T>
void VariableUpdate<T>::direct(int64_t begin, T* gradient, int64_t n) {
  clip_and_decay(begin, gradient, n);
  layerwise(*rule_).direct(gradient, slots_at(begin), n, plan_->step);
}

template <class T>
void VariableUpdate<T>::move(int64_t begin, const T* direction, int64_t n, double ratio) {
  const T rate = static_cast<T>(plan_->step.learning_rate * ratio);
  T* w = value_ + begin;
  for (int64_t i = 0; i < n; ++i) w[i] -= rate * direction[i];
}

template <class T>
void VariableUpdate<T>::update_variable(T* gradient, const VariableInfo& variable) {
  dynamic_cast<const WholeVariableRule&>(*rule_).update_variable(value_, gradient, slots_at(0),
                                                                 variable, plan_->step);
}

template <class T>
void VariableUpdate<T>::average(int64_t begin, int64_t n) {
  if (!plan_->averages) return;
  T* w = value_ + begin;
  T* mean = average_ + begin;
  const T momentum = static_cast<T>(plan_->average_momentum);
  const T rest = static_cast<T>(1 - plan_->average_momentum);
  for (int64_t i = 0; i < n; ++i) mean[i] = momentum * mean[i] + rest * w[i];
  if (plan_->overwrites) std::copy_n(mean, n, w);
}

template <class T>
template <class Fn>
void BufferedUpdate<T>::for_each(const Fn& fn) {
  constexpr int64_t kRuns = 16;  // that one worker processes at a time
  parallel_for(static_cast<int64_t>(runs_.size()), kRuns, [&](int64_t first, int64_t end) {
    VariableUpdate<T> update = update_;
    for (int64_t r = first; r < end; ++r) fn(update, r, runs_[r], values_.data() + runs_[r].at);
  });
}

template <class T>
void BufferedUpdate<T>::take_all(const T* gradient, int64_t size) {
  for (int64_t begin = 0; begin < size; begin += kBuffer) {
    runs_.push_back({.begin = begin, .n = std::min(kBuffer, size - begin), .at = begin});
  }
  values_.resize(size);
  for_each([&](VariableUpdate<T>& update, int64_t, const Run& run, T* values) {
    update.receive(run.begin, gradient + run.begin, run.n, values);
  });
}

template <class T>
void BufferedUpdate<T>::take(int64_t begin, const T* gradient, int64_t n) {
  const auto at = static_cast<int64_t>(values_.size());
  runs_.push_back({.begin = begin, .n = n, .at = at});
  values_.resize(at + n);
  update_.receive(begin, gradient, n, values_.data() + at);
}

template <class T>
double BufferedUpdate<T>::squares() {
  std::vector<double> of_runs(runs_.size());
  for_each([&](VariableUpdate<T>&, int64_t r, const Run& run, const T* values) {
    of_runs[r] = kernels::sum_of_squares(values, run.n);
  });
  // Adds the sums of the runs in order, so the result does not depend on the number of workers.
  double sum = 0;
  for (const double of_run : of_runs) sum += of_run;
  return sum;
}

template <class T>
void BufferedUpdate<T>::scale(double factor) {
  if (factor == 1) return;
  for (T& x : values_) x *= static_cast<T>(factor);
}

template <class T>
SumsOfSquares BufferedUpdate<T>::direct() {
  std::vector<SumsOfSquares> of_runs(runs_.size());
  for_each([&](VariableUpdate<T>& update, int64_t r, const Run& run, T* values) {
    update.direct(run.begin, values, run.n);
    of_runs[r] = {.values = kernels::sum_of_squares(update.values() + run.begin, run.n),
                  .directions = kernels::sum_of_squares(values, run.n)};
  });
  // In the order of the runs, as in squares().
  SumsOfSquares out;
  for (const SumsOfSquares& of_run : of_runs) {
    out.values += of_run.values;
    out.directions += of_run.directions;
  }
  return out;
}

template <class T>
void BufferedUpdate<T>::finish() {
  for_each([](VariableUpdate<T>& update, int64_t, const Run& run, T* values) {
    update.change(run.begin, values, run.n);
    update.average(run.begin, run.n);
  });
}

template <class T>
void BufferedUpdate<T>::finish_variable(const VariableInfo& variable) {
  for_each([](VariableUpdate<T>& update, int64_t, const Run& run, T* values) {
    update.clip_and_decay(run.begin, values, run.n);
  });
  update_.update_variable(values_.data(), variable);
  average();
}

template <class T>
void BufferedUpdate<T>::average() {
  for_each([](VariableUpdate<T>& update, int64_t, const Run& run, T*) {
    update.average(run.begin, run.n);
  });
}

template <class T>
void BufferedUpdate<T>::move(double ratio) {
  for_each([&](VariableUpdate<T>& update, int64_t, const Run& run, T* values) {
    update.move(run.begin, values, run.n, ratio);
    update.average(run.begin, run.n);
  });
}

template class VariableUpdate<float>;
template class VariableUpdate<double>;
template class BufferedUpdate<float>;
template class BufferedUpdate<double>;

}  // namespace keel
