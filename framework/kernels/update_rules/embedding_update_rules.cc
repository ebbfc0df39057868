#include <keel/framework/kernels/update_rules/embedding_update_rules.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/base/errors.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/update_rules/smallest_root.h>
#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel {
namespace {

using kernels::smallest_root;

template <bool kSquareRoot, bool kNesterov, class T>
void adagrad_momentum(T* __restrict w, const T* __restrict g, T* __restrict a, T* __restrict m,
                      int64_t n, double learning_rate, const AdagradMomentumRuleOptions& o) {
  const T lr = static_cast<T>(learning_rate);
  const T momentum = static_cast<T>(o.momentum);
  const T keep = static_cast<T>(o.beta2);
  const T add = static_cast<T>(o.beta2 == 1 ? 1 : 1 - o.beta2);
  const T epsilon = static_cast<T>(o.epsilon);
  const T power = static_cast<T>(-1 / o.exponent);
  const T smallest = smallest_root<T>();
  const auto scaled = [=](T gradient, T base) {
    if constexpr (kSquareRoot) return gradient / std::max(std::sqrt(base), smallest);
    // The power of a zero base is infinite, and 0 * infinity would be NaN.
    return gradient == 0 ? T{0} : gradient * math::pow(base, power);
  };
  for (int64_t i = 0; i < n; ++i) {
    a[i] = keep * a[i] + add * (g[i] * g[i]);
    const T step = scaled(g[i], a[i] + epsilon);
    m[i] = momentum * m[i] + step;
    w[i] -= lr * (kNesterov ? momentum * m[i] + step : m[i]);
  }
}

template <class T>
void update_adagrad_momentum(const AdagradMomentumRuleOptions& o, T* w, const T* g, T* const* slots,
                             int64_t n, double lr) {
  if (o.exponent == 2) {
    o.nesterov ? adagrad_momentum<true, true>(w, g, slots[0], slots[1], n, lr, o)
               : adagrad_momentum<true, false>(w, g, slots[0], slots[1], n, lr, o);
  } else {
    o.nesterov ? adagrad_momentum<false, true>(w, g, slots[0], slots[1], n, lr, o)
               : adagrad_momentum<false, false>(w, g, slots[0], slots[1], n, lr, o);
  }
}

template <bool kNesterov, class T>
void momentum(T* __restrict w, const T* __restrict g, T* __restrict m, int64_t n,
              double learning_rate, double momentum_) {
  const T lr = static_cast<T>(learning_rate);
  const T k = static_cast<T>(momentum_);
  for (int64_t i = 0; i < n; ++i) {
    m[i] = k * m[i] + g[i];
    w[i] -= lr * (kNesterov ? g[i] + k * m[i] : m[i]);
  }
}

template <class T>
void update_momentum(const MomentumRule& rule, T* w, const T* g, T* const* slots, int64_t n,
                     double lr) {
  rule.nesterov ? momentum<true>(w, g, slots[0], n, lr, rule.momentum)
                : momentum<false>(w, g, slots[0], n, lr, rule.momentum);
}

template <class T>
void rmsprop(T* __restrict w, const T* __restrict g, T* __restrict ms, T* __restrict mom, int64_t n,
             double learning_rate, const RMSPropRule& rule) {
  const T lr = static_cast<T>(learning_rate);
  const T add = static_cast<T>(1 - rule.rho);
  const T k = static_cast<T>(rule.momentum);
  const T epsilon = static_cast<T>(rule.epsilon);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    ms[i] += add * (g[i] * g[i] - ms[i]);
    mom[i] = k * mom[i] + lr * g[i] / std::max(std::sqrt(ms[i] + epsilon), smallest);
    w[i] -= mom[i];
  }
}

// The proximal operator: soft-thresholds x by rate * l1, then divides it by 1 + rate * l2.
template <class T>
T shrunk(T x, T rate, T l1, T l2) {
  return std::copysign(std::max(std::abs(x) - rate * l1, T{0}), x) / (1 + rate * l2);
}

template <class T>
void proximal_adagrad(T* __restrict w, const T* __restrict g, T* __restrict a, int64_t n,
                      double learning_rate, const ProximalAdagradRule& rule) {
  const T lr = static_cast<T>(learning_rate);
  const T l1 = static_cast<T>(rule.l1);
  const T l2 = static_cast<T>(rule.l2);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    a[i] += g[i] * g[i];
    const T rate = lr / std::max(std::sqrt(a[i]), smallest);
    w[i] = shrunk(w[i] - rate * g[i], rate, l1, l2);
  }
}

template <class T>
void proximal_yogi(T* __restrict w, const T* __restrict g, T* __restrict v, T* __restrict m,
                   int64_t n, double learning_rate, const ProximalYogiRuleOptions& o) {
  const T lr = static_cast<T>(learning_rate);
  const T b1 = static_cast<T>(o.beta1);
  const T c1 = static_cast<T>(1 - o.beta1);
  const T c2 = static_cast<T>(1 - o.beta2);
  const T epsilon = static_cast<T>(o.epsilon);
  const T l1 = static_cast<T>(o.l1);
  const T l2 = static_cast<T>(o.l2);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    const T square = g[i] * g[i];
    const T sign = (square > v[i] ? T{1} : T{0}) - (square < v[i] ? T{1} : T{0});
    m[i] = b1 * m[i] + c1 * g[i];
    v[i] += c2 * sign * square;
    const T rate = lr / std::max(std::sqrt(v[i]) + epsilon, smallest);
    w[i] = shrunk(w[i] - rate * m[i], rate, l1, l2);
  }
}

template <class T>
void frequency_estimator(T* __restrict w, T* __restrict last, int64_t n, double step_,
                         const FrequencyEstimatorRuleOptions& o) {
  const T step = static_cast<T>(step_);
  const T tau = static_cast<T>(o.tau);
  const T max_delta = static_cast<T>(o.max_delta);
  const T threshold = static_cast<T>(o.outlier_threshold);
  for (int64_t i = 0; i < n; ++i) {
    const T delta = step - last[i];
    const T cut = std::min(delta, max_delta);
    const T mixed = w[i] * (1 - tau) + cut * tau;
    w[i] = delta >= threshold * w[i] ? cut : mixed;
    last[i] = step;
  }
}

template <class T>
void laprop(T* __restrict w, const T* __restrict g, T* __restrict m, T* __restrict v, int64_t n,
            const Step& step, const LaPropRuleOptions& o) {
  double decay = o.beta2;
  if (!step.hyperparameters.empty()) {
    const double t = step.hyperparameters[0];
    decay *= (1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta2, t + 1));
  }
  const T lr = static_cast<T>(step.learning_rate);
  const T b1 = static_cast<T>(o.beta1);
  const T c1 = static_cast<T>(std::sqrt(1 - o.beta1 * o.beta1));
  const T keep = static_cast<T>(decay);
  const T add = static_cast<T>(1 - decay);
  const T epsilon = static_cast<T>(o.epsilon);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    v[i] = keep * v[i] + add * (g[i] * g[i] + epsilon);
    m[i] = b1 * m[i] + c1 * (g[i] / std::max(std::sqrt(v[i]), smallest));
    w[i] -= lr * m[i];
  }
}

template <class T>
void f2a(T* __restrict w, const T* __restrict g, T* __restrict a, T* __restrict k, int64_t n,
         const Step& step, const F2ARuleOptions& o) {
  const double number = step.hyperparameters.empty() ? 1 : step.hyperparameters[0];
  const T global_step = static_cast<T>(std::max(number, 1.0));
  const T lr = static_cast<T>(step.learning_rate);
  const T rho = static_cast<T>(o.rho);
  const T most = static_cast<T>(o.max_lr_multiplier);
  const T l1 = static_cast<T>(o.l1);
  const T l2 = static_cast<T>(o.l2);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    k[i] += 1;
    a[i] += g[i] * g[i];
    const T factor = std::min(math::pow(global_step / k[i], rho), most);
    const T sign = static_cast<T>((w[i] > 0) - (w[i] < 0));
    w[i] -= lr * (g[i] * factor / std::max(std::sqrt(a[i]), smallest) + (l1 * sign + l2 * w[i]));
  }
}

template <class T>
void rowwise_adagrad(T* __restrict w, const T* __restrict g, T* a, int64_t n, double learning_rate,
                     double epsilon) {
  *a += static_cast<T>(kernels::sum_of_squares(g, n) / static_cast<double>(n));
  const T divisor = std::max(std::sqrt(*a) + static_cast<T>(epsilon), smallest_root<T>());
  const T rate = static_cast<T>(learning_rate) / divisor;
  for (int64_t i = 0; i < n; ++i) w[i] -= rate * g[i];
}

}  // namespace

std::vector<Slot> EngineRule::slots() const {
  std::vector<Slot> out = base->slots();
  for (size_t i = 0; i < out.size(); ++i) out[i].name = slot_names.at(i);
  return out;
}
void EngineRule::update(float* w, const float* g, float* const* slots, int64_t n,
                        const Step& step) const {
  base->update(w, g, slots, n, step);
}
void EngineRule::update(double* w, const double* g, double* const* slots, int64_t n,
                        const Step& step) const {
  base->update(w, g, slots, n, step);
}

std::vector<Slot> AdagradMomentumRule::slots() const {
  return {{.name = "accumulators"}, {.name = "momenta"}};
}
void AdagradMomentumRule::update(float* w, const float* g, float* const* slots, int64_t n,
                                 const Step& step) const {
  update_adagrad_momentum(options, w, g, slots, n, step.learning_rate);
}
void AdagradMomentumRule::update(double* w, const double* g, double* const* slots, int64_t n,
                                 const Step& step) const {
  update_adagrad_momentum(options, w, g, slots, n, step.learning_rate);
}

std::vector<Slot> MomentumRule::slots() const { return {{.name = "momenta"}}; }
void MomentumRule::update(float* w, const float* g, float* const* slots, int64_t n,
                          const Step& step) const {
  update_momentum(*this, w, g, slots, n, step.learning_rate);
}
void MomentumRule::update(double* w, const double* g, double* const* slots, int64_t n,
                          const Step& step) const {
  update_momentum(*this, w, g, slots, n, step.learning_rate);
}

std::vector<Slot> RMSPropRule::slots() const { return {{.name = "ms"}, {.name = "mom"}}; }
void RMSPropRule::update(float* w, const float* g, float* const* slots, int64_t n,
                         const Step& step) const {
  rmsprop(w, g, slots[0], slots[1], n, step.learning_rate, *this);
}
void RMSPropRule::update(double* w, const double* g, double* const* slots, int64_t n,
                         const Step& step) const {
  rmsprop(w, g, slots[0], slots[1], n, step.learning_rate, *this);
}

std::vector<Slot> ProximalAdagradRule::slots() const {
  return {{.name = "accumulators", .initial = initial_accumulator_value}};
}
void ProximalAdagradRule::update(float* w, const float* g, float* const* slots, int64_t n,
                                 const Step& step) const {
  proximal_adagrad(w, g, slots[0], n, step.learning_rate, *this);
}
void ProximalAdagradRule::update(double* w, const double* g, double* const* slots, int64_t n,
                                 const Step& step) const {
  proximal_adagrad(w, g, slots[0], n, step.learning_rate, *this);
}

std::vector<Slot> ProximalYogiRule::slots() const {
  return {{.name = "v", .initial = options.initial_accumulator_value}, {.name = "m"}};
}
void ProximalYogiRule::update(float* w, const float* g, float* const* slots, int64_t n,
                              const Step& step) const {
  proximal_yogi(w, g, slots[0], slots[1], n, step.learning_rate, options);
}
void ProximalYogiRule::update(double* w, const double* g, double* const* slots, int64_t n,
                              const Step& step) const {
  proximal_yogi(w, g, slots[0], slots[1], n, step.learning_rate, options);
}

std::vector<Slot> FrequencyEstimatorRule::slots() const { return {{.name = "last_hit_step"}}; }
void FrequencyEstimatorRule::update(float* w, const float*, float* const* slots, int64_t n,
                                    const Step& step) const {
  frequency_estimator(w, slots[0], n, step.learning_rate, options);
}
void FrequencyEstimatorRule::update(double* w, const double*, double* const* slots, int64_t n,
                                    const Step& step) const {
  frequency_estimator(w, slots[0], n, step.learning_rate, options);
}

std::vector<Slot> LaPropRule::slots() const {
  return {{.name = "mu", .initial = options.initial_slot_value},
          {.name = "nu", .initial = options.initial_slot_value}};
}
void LaPropRule::update(float* w, const float* g, float* const* slots, int64_t n,
                        const Step& step) const {
  laprop(w, g, slots[0], slots[1], n, step, options);
}
void LaPropRule::update(double* w, const double* g, double* const* slots, int64_t n,
                        const Step& step) const {
  laprop(w, g, slots[0], slots[1], n, step, options);
}

std::vector<Slot> F2ARule::slots() const {
  return {{.name = "accumulators", .initial = options.initial_accumulator_value},
          {.name = "local_steps", .initial = options.initial_local_step_value}};
}
void F2ARule::update(float* w, const float* g, float* const* slots, int64_t n,
                     const Step& step) const {
  f2a(w, g, slots[0], slots[1], n, step, options);
}
void F2ARule::update(double* w, const double* g, double* const* slots, int64_t n,
                     const Step& step) const {
  f2a(w, g, slots[0], slots[1], n, step, options);
}

std::vector<Slot> RowwiseAdagradRule::slots() const {
  return {{.name = "accumulators", .initial = initial_accumulator_value, .per_row = true}};
}
void RowwiseAdagradRule::update(float* w, const float* g, float* const* slots, int64_t n,
                                const Step& step) const {
  rowwise_adagrad(w, g, slots[0], n, step.learning_rate, epsilon);
}
void RowwiseAdagradRule::update(double* w, const double* g, double* const* slots, int64_t n,
                                const Step& step) const {
  rowwise_adagrad(w, g, slots[0], n, step.learning_rate, epsilon);
}

std::vector<Slot> CustomRule::slots() const {
  std::vector<Slot> out;
  for (const std::string& name : slot_names) out.push_back({.name = name});
  return out;
}
void CustomRule::update(float* w, const float* g, float* const* slots, int64_t n,
                        const Step& step) const {
  const auto size = static_cast<size_t>(n);
  computation({.gradient = {g, size},
               .row = {w, size},
               .slots = {slots, slot_names.size()},
               .learning_rate = step.learning_rate,
               .hyperparameters = step.hyperparameters});
}
void CustomRule::update(double*, const double*, double* const*, int64_t, const Step&) const {
  throw NotImplementedError("CustomRule: float64 is not supported; use a float32 table");
}

}  // namespace keel
