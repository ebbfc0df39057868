#include <keel/framework/kernels/update_rules/dense_update_rules.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/update_rules/smallest_root.h>

namespace keel {
namespace {

using kernels::smallest_root;

double count_of(const Step& step) { return static_cast<double>(step.iteration) + 1; }

// The options, rounded to the precision of the elements.
template <class T>
struct Moments {
  explicit Moments(const MomentRuleOptions& o)
      : b1(static_cast<T>(o.beta_1)),
        b2(static_cast<T>(o.beta_2)),
        c1(static_cast<T>(1 - o.beta_1)),
        c2(static_cast<T>(1 - o.beta_2)),
        epsilon(static_cast<T>(o.epsilon)) {}
  const T b1, b2, c1, c2, epsilon;
};

template <bool kMomentum, bool kCentered, class T>
void rmsprop(const KerasRMSpropRuleOptions& o, T* __restrict w, const T* __restrict g,
             T* const* slots, int64_t n, const Step& step) {
  T* __restrict v = slots[0];
  T* __restrict m = kMomentum ? slots[1] : nullptr;
  T* __restrict a = kCentered ? slots[kMomentum ? 2 : 1] : nullptr;
  const T lr = static_cast<T>(step.learning_rate);
  const T rho = static_cast<T>(o.rho);
  const T rest = static_cast<T>(1 - o.rho);
  const T momentum = static_cast<T>(o.momentum);
  const T epsilon = static_cast<T>(o.epsilon);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    v[i] = rho * v[i] + rest * (g[i] * g[i]);
    T spread = v[i];
    if constexpr (kCentered) {
      a[i] = rho * a[i] + rest * g[i];
      // A variance is not negative; a value below 0 is a rounding error.
      spread = std::max(spread - a[i] * a[i], T{0});
    }
    // With epsilon 0, a zero gradient on zero slots would divide 0 by 0.
    T move = lr * g[i] / std::max(std::sqrt(spread + epsilon), smallest);
    if constexpr (kMomentum) {
      m[i] = momentum * m[i] + move;
      move = m[i];
    }
    w[i] -= move;
  }
}

template <class T>
void update_rmsprop(const KerasRMSpropRuleOptions& o, T* w, const T* g, T* const* slots, int64_t n,
                    const Step& step) {
  if (o.momentum > 0) {
    o.centered ? rmsprop<true, true>(o, w, g, slots, n, step)
               : rmsprop<true, false>(o, w, g, slots, n, step);
  } else {
    o.centered ? rmsprop<false, true>(o, w, g, slots, n, step)
               : rmsprop<false, false>(o, w, g, slots, n, step);
  }
}

template <class T>
void update_adadelta(const AdadeltaRule& rule, T* __restrict w, const T* __restrict g,
                     T* const* slots, int64_t n, const Step& step) {
  T* __restrict a = slots[0];
  T* __restrict d = slots[1];
  const T lr = static_cast<T>(step.learning_rate);
  const T rho = static_cast<T>(rule.rho);
  const T rest = static_cast<T>(1 - rule.rho);
  const T epsilon = static_cast<T>(rule.epsilon);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    a[i] = rho * a[i] + rest * (g[i] * g[i]);
    const T move = std::sqrt(d[i] + epsilon) * g[i] / std::max(std::sqrt(a[i] + epsilon), smallest);
    d[i] = rho * d[i] + rest * (move * move);
    w[i] -= lr * move;
  }
}

template <class T>
void update_adamax(const MomentRuleOptions& o, T* __restrict w, const T* __restrict g,
                   T* const* slots, int64_t n, const Step& step) {
  T* __restrict m = slots[0];
  T* __restrict u = slots[1];
  const Moments<T> of(o);
  const T lr = static_cast<T>(step.learning_rate / (1 - math::pow(o.beta_1, count_of(step))));
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    m[i] = of.b1 * m[i] + of.c1 * g[i];
    u[i] = std::max(of.b2 * u[i], std::abs(g[i]));
    w[i] -= lr * m[i] / std::max(u[i] + of.epsilon, smallest);
  }
}

// mu_t of the formula.
double nadam_factor(const MomentRuleOptions& o, double count) {
  return o.beta_1 * (1 - 0.5 * math::pow(0.96, count));
}

double nadam_rate_of_momentum(const MomentRuleOptions& o, const Step& step) {
  const double next = nadam_factor(o, count_of(step) + 1);
  return step.learning_rate * next / (1 - step.shared[0] * next);
}

template <class T>
void update_nadam(const MomentRuleOptions& o, T* __restrict w, const T* __restrict g,
                  T* const* slots, int64_t n, const Step& step) {
  T* __restrict m = slots[0];
  T* __restrict v = slots[1];
  const Moments<T> of(o);
  const double now = nadam_factor(o, count_of(step));
  const double of_g = step.learning_rate * (1 - now) / (1 - step.shared[0]);
  const T x = static_cast<T>(nadam_rate_of_momentum(o, step));
  const T y = static_cast<T>(of_g);
  const T correction = static_cast<T>(1 - math::pow(o.beta_2, count_of(step)));
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    m[i] = of.b1 * m[i] + of.c1 * g[i];
    v[i] = of.b2 * v[i] + of.c2 * (g[i] * g[i]);
    const T root = std::sqrt(v[i] / correction) + of.epsilon;
    w[i] -= (x * m[i] + y * g[i]) / std::max(root, smallest);
  }
}

template <class T>
void update_lion(const LionRule& rule, T* __restrict w, const T* __restrict g, T* __restrict m,
                 int64_t n, const Step& step) {
  const T lr = static_cast<T>(step.learning_rate);
  const T b1 = static_cast<T>(rule.beta_1);
  const T b2 = static_cast<T>(rule.beta_2);
  const T c1 = static_cast<T>(1 - rule.beta_1);
  const T c2 = static_cast<T>(1 - rule.beta_2);
  for (int64_t i = 0; i < n; ++i) {
    const T x = b1 * m[i] + c1 * g[i];
    // Both comparisons are false for NaN, so the product keeps it NaN.
    w[i] -= x > 0 ? lr : x < 0 ? -lr : lr * x;
    m[i] = b2 * m[i] + c2 * g[i];
  }
}

template <class T>
void direct_lamb(const MomentRuleOptions& o, T* __restrict g, T* const* slots, int64_t n,
                 const Step& step) {
  T* __restrict m = slots[0];
  T* __restrict v = slots[1];
  const Moments<T> of(o);
  const T correction_1 = static_cast<T>(1 - math::pow(o.beta_1, count_of(step)));
  const T correction_2 = static_cast<T>(1 - math::pow(o.beta_2, count_of(step)));
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    m[i] = of.b1 * m[i] + of.c1 * g[i];
    v[i] = of.b2 * v[i] + of.c2 * (g[i] * g[i]);
    const T root = std::sqrt(v[i] / correction_2) + of.epsilon;
    g[i] = m[i] / correction_1 / std::max(root, smallest);
  }
}

}  // namespace

std::vector<Slot> KerasRMSpropRule::slots() const {
  std::vector<Slot> out = {{.name = "velocity"}};
  if (options.momentum > 0) out.push_back({.name = "momentum", .group = 1});
  if (options.centered) out.push_back({.name = "average_gradient", .group = 2});
  return out;
}
void KerasRMSpropRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                              const Step& step) const {
  update_rmsprop(options, value, gradient, slots, n, step);
}
void KerasRMSpropRule::update(double* value, const double* gradient, double* const* slots,
                              int64_t n, const Step& step) const {
  update_rmsprop(options, value, gradient, slots, n, step);
}

std::vector<Slot> AdadeltaRule::slots() const {
  return {{.name = "accumulated_grad"}, {.name = "accumulated_delta_var"}};
}
void AdadeltaRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                          const Step& step) const {
  update_adadelta(*this, value, gradient, slots, n, step);
}
void AdadeltaRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                          const Step& step) const {
  update_adadelta(*this, value, gradient, slots, n, step);
}

std::vector<Slot> AdamaxRule::slots() const { return {{.name = "momentum"}, {.name = "norm"}}; }
void AdamaxRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                        const Step& step) const {
  update_adamax(options, value, gradient, slots, n, step);
}
void AdamaxRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                        const Step& step) const {
  update_adamax(options, value, gradient, slots, n, step);
}

double NadamRule::rate_of_momentum(const Step& step) const {
  return nadam_rate_of_momentum(options, step);
}
std::vector<Slot> NadamRule::slots() const { return {{.name = "momentum"}, {.name = "velocity"}}; }
std::vector<Slot> NadamRule::shared_slots() const { return {{.name = "u_product", .initial = 1}}; }
void NadamRule::step_shared(std::span<double> shared, const Step& step) const {
  shared[0] *= nadam_factor(options, count_of(step));
}
void NadamRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                       const Step& step) const {
  update_nadam(options, value, gradient, slots, n, step);
}
void NadamRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                       const Step& step) const {
  update_nadam(options, value, gradient, slots, n, step);
}

std::vector<Slot> LionRule::slots() const { return {{.name = "momentum"}}; }
void LionRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                      const Step& step) const {
  update_lion(*this, value, gradient, slots[0], n, step);
}
void LionRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                      const Step& step) const {
  update_lion(*this, value, gradient, slots[0], n, step);
}

std::vector<Slot> LambRule::slots() const { return {{.name = "momentum"}, {.name = "velocity"}}; }
void LambRule::direct(float* gradient, float* const* slots, int64_t n, const Step& step) const {
  direct_lamb(options, gradient, slots, n, step);
}
void LambRule::direct(double* gradient, double* const* slots, int64_t n, const Step& step) const {
  direct_lamb(options, gradient, slots, n, step);
}

}  // namespace keel
