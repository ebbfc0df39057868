#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/update_rules/row_loop.h>
#include <keel/framework/kernels/update_rules/smallest_root.h>
#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel {
namespace {

using kernels::smallest_root;

template <class T>
void sgd(T* __restrict w, const T* __restrict g, int64_t n, double learning_rate) {
  const T lr = static_cast<T>(learning_rate);
#pragma GCC unroll 1  // GCC turns 16 unrolled steps into scalar code
  for (int64_t i = 0; i < n; ++i) w[i] -= lr * g[i];
}

template <bool kNesterov, class T>
void sgd_momentum(T* __restrict w, const T* __restrict g, T* __restrict m, int64_t n,
                  double learning_rate, double momentum_) {
  const T lr = static_cast<T>(learning_rate);
  const T momentum = static_cast<T>(momentum_);
  for (int64_t i = 0; i < n; ++i) {
    const T step = lr * g[i];
    m[i] = momentum * m[i] - step;
    w[i] += kNesterov ? momentum * m[i] - step : m[i];
  }
}

template <class T>
void update_sgd(const SGDRule& rule, T* w, const T* g, T* const* slots, int64_t n,
                const Step& step) {
  if (rule.momentum == 0) {
    sgd(w, g, n, step.learning_rate);
  } else if (rule.nesterov) {
    sgd_momentum<true>(w, g, slots[0], n, step.learning_rate, rule.momentum);
  } else {
    sgd_momentum<false>(w, g, slots[0], n, step.learning_rate, rule.momentum);
  }
}

template <class T>
void adagrad(T* __restrict w, const T* __restrict g, T* __restrict a, int64_t n,
             double learning_rate, double epsilon_) {
  const T lr = static_cast<T>(learning_rate);
  const T epsilon = static_cast<T>(epsilon_);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    a[i] += g[i] * g[i];
    w[i] -= lr * g[i] / std::max(std::sqrt(a[i] + epsilon), smallest);
  }
}

template <bool kSumInsideSqrt, class T>
void adam(T* __restrict w, const T* __restrict g, T* __restrict m, T* __restrict v, int64_t n,
          double alpha_, const AdamRuleOptions& o) {
  const T alpha = static_cast<T>(alpha_);
  const T b1 = static_cast<T>(o.beta_1);
  const T b2 = static_cast<T>(o.beta_2);
  const T c1 = static_cast<T>(1 - o.beta_1);
  const T c2 = static_cast<T>(1 - o.beta_2);
  const T epsilon = static_cast<T>(kSumInsideSqrt ? o.epsilon * o.epsilon : o.epsilon);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    m[i] = b1 * m[i] + c1 * g[i];
    v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
    const T root = kSumInsideSqrt ? std::sqrt(v[i] + epsilon) : std::sqrt(v[i]) + epsilon;
    w[i] -= alpha * m[i] / std::max(root, smallest);
  }
}

// Adam with the largest second moment so far under the root.
template <class T>
void amsgrad(T* __restrict w, const T* __restrict g, T* __restrict m, T* __restrict v,
             T* __restrict largest, int64_t n, double alpha_, const AdamRuleOptions& o) {
  const T alpha = static_cast<T>(alpha_);
  const T b1 = static_cast<T>(o.beta_1);
  const T b2 = static_cast<T>(o.beta_2);
  const T c1 = static_cast<T>(1 - o.beta_1);
  const T c2 = static_cast<T>(1 - o.beta_2);
  const T epsilon = static_cast<T>(o.epsilon);
  const T smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    m[i] = b1 * m[i] + c1 * g[i];
    v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
    largest[i] = std::max(largest[i], v[i]);
    w[i] -= alpha * m[i] / std::max(std::sqrt(largest[i]) + epsilon, smallest);
  }
}

// The learning rate, corrected for the bias of moments that start at zero.
double adam_alpha(const AdamRuleOptions& o, const Step& step) {
  if (!o.bias_correction) return step.learning_rate;
  const double t = static_cast<double>(step.iteration) + 1;
  return step.learning_rate *
         (std::sqrt(1 - math::pow(o.beta_2, t)) / (1 - math::pow(o.beta_1, t)));
}

template <class T>
void update_adam(const AdamRuleOptions& o, T* w, const T* g, T* const* slots, int64_t n,
                 const Step& step) {
  const double alpha = adam_alpha(o, step);
  if (o.amsgrad) {
    amsgrad(w, g, slots[0], slots[1], slots[2], n, alpha, o);
  } else if (o.sum_inside_sqrt) {
    adam<true>(w, g, slots[0], slots[1], n, alpha, o);
  } else {
    adam<false>(w, g, slots[0], slots[1], n, alpha, o);
  }
}

// Computes both forms of the linear slot: l' = l + x g - (a'^p - a^p) w y, with x = 1 and
// y = 1 / lr, or x = lr and y = 1. The bounds and the denominator are multiplied by x and y
// likewise. A denominator of 0 occurs only with a numerator of 0 and must give weight 0, hence the
// lower bound of the smallest positive normal number.
template <bool kSquareRoot, bool kShrinks, class T>
void ftrl(T* __restrict w, const T* __restrict g, T* __restrict a, T* __restrict l, int64_t n,
          double learning_rate, const FtrlRuleOptions& o) {
  const bool scaled = o.multiply_linear_by_learning_rate;
  const T p = static_cast<T>(-o.learning_rate_power);
  const T x = static_cast<T>(scaled ? learning_rate : 1.0);
  const T divisor = static_cast<T>(scaled ? 1.0 : learning_rate);
  const T l1 = x * static_cast<T>(o.l1);
  const T twice_l2 = x * static_cast<T>(2 * o.l2);
  const T beta = static_cast<T>(o.beta);
  const T shrinkage = static_cast<T>(2 * o.l2_shrinkage);
  const T smallest = std::numeric_limits<T>::min();
  const auto power = [p](T base) { return kSquareRoot ? std::sqrt(base) : math::pow(base, p); };
  for (int64_t i = 0; i < n; ++i) {
    const T squares = a[i] + g[i] * g[i];
    const T root = power(squares);
    const T pull = kShrinks ? g[i] + shrinkage * w[i] : g[i];
    const T linear = l[i] + x * pull - (root - power(a[i])) / divisor * w[i];
    const T numerator = std::min(std::max(linear, -l1), l1) - linear;
    w[i] = numerator / std::max((root + beta) / divisor + twice_l2, smallest);
    a[i] = squares;
    l[i] = linear;
  }
}

template <class T>
void update_ftrl(const FtrlRuleOptions& o, T* w, const T* g, T* const* slots, int64_t n,
                 const Step& step) {
  const double lr = step.learning_rate;
  const bool shrinks = o.l2_shrinkage != 0;
  if (o.learning_rate_power == -0.5) {
    shrinks ? ftrl<true, true>(w, g, slots[0], slots[1], n, lr, o)
            : ftrl<true, false>(w, g, slots[0], slots[1], n, lr, o);
  } else {
    shrinks ? ftrl<false, true>(w, g, slots[0], slots[1], n, lr, o)
            : ftrl<false, false>(w, g, slots[0], slots[1], n, lr, o);
  }
}

template <class T>
void update_whole(const LayerwiseRule& rule, T* w, const T* g, T* const* slots, int64_t n,
                  const Step& step) {
  std::vector<T> u(g, g + n);
  rule.direct(u.data(), slots, n, step);
  const T rate = static_cast<T>(
      step.learning_rate *
      LayerwiseRule::ratio(kernels::sum_of_squares(w, n), kernels::sum_of_squares(u.data(), n)));
  for (int64_t i = 0; i < n; ++i) w[i] -= rate * u[i];
}

}  // namespace

void UpdateRule::update_rows(const TableRows& table, const float* gradients,
                             const Step& step) const {
  std::vector<float*> slots(this->slots().size());
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const int64_t offset = table.rows[i] * table.row_step;
    for (size_t s = 0; s < slots.size(); ++s) slots[s] = table.slots[s] + offset;
    update(table.values + offset, gradients + static_cast<int64_t>(i) * table.dim, slots.data(),
           table.dim, step);
  }
}

double LayerwiseRule::ratio(double squares_of_w, double squares_of_u) {
  if (squares_of_w == 0 || squares_of_u == 0) return 1;
  return std::sqrt(squares_of_w) / std::sqrt(squares_of_u);
}
void LayerwiseRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                           const Step& step) const {
  update_whole(*this, value, gradient, slots, n, step);
}
void LayerwiseRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                           const Step& step) const {
  update_whole(*this, value, gradient, slots, n, step);
}

std::vector<Slot> SGDRule::slots() const {
  if (momentum == 0) return {};
  return {{.name = "momentum"}};
}
void SGDRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                     const Step& step) const {
  update_sgd(*this, value, gradient, slots, n, step);
}
void SGDRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                     const Step& step) const {
  update_sgd(*this, value, gradient, slots, n, step);
}
void SGDRule::update_rows(const TableRows& table, const float* gradients, const Step& step) const {
  if (momentum != 0) return UpdateRule::update_rows(table, gradients, step);
  kernels::for_each_row<0>(table, gradients, [&](float* w, const float* g, auto&, int64_t n) {
    sgd(w, g, n, step.learning_rate);
  });
}

std::vector<Slot> AdagradRule::slots() const {
  return {{.name = "accumulator", .initial = initial_accumulator_value}};
}
void AdagradRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                         const Step& step) const {
  adagrad(value, gradient, slots[0], n, step.learning_rate, epsilon);
}
void AdagradRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                         const Step& step) const {
  adagrad(value, gradient, slots[0], n, step.learning_rate, epsilon);
}
void AdagradRule::update_rows(const TableRows& table, const float* gradients,
                              const Step& step) const {
  kernels::for_each_row<1>(table, gradients, [&](float* w, const float* g, auto& slots, int64_t n) {
    adagrad(w, g, slots[0], n, step.learning_rate, epsilon);
  });
}

double AdamRule::alpha(const Step& step) const { return adam_alpha(options, step); }
std::vector<Slot> AdamRule::slots() const {
  std::vector<Slot> out = {{.name = "momentum"}, {.name = "velocity"}};
  if (options.amsgrad) out.push_back({.name = "velocity_hat", .group = 1});
  return out;
}
void AdamRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                      const Step& step) const {
  update_adam(options, value, gradient, slots, n, step);
}
void AdamRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                      const Step& step) const {
  update_adam(options, value, gradient, slots, n, step);
}
void AdamRule::update_rows(const TableRows& table, const float* gradients, const Step& step) const {
  if (options.amsgrad) return UpdateRule::update_rows(table, gradients, step);
  const double alpha = adam_alpha(options, step);
  const auto with = [&]<bool kSumInsideSqrt>() {
    kernels::for_each_row<2>(table, gradients,
                             [&](float* w, const float* g, auto& slots, int64_t n) {
                               adam<kSumInsideSqrt>(w, g, slots[0], slots[1], n, alpha, options);
                             });
  };
  options.sum_inside_sqrt ? with.operator()<true>() : with.operator()<false>();
}

std::vector<Slot> FtrlRule::slots() const {
  return {{.name = "accumulator", .initial = options.initial_accumulator_value},
          {.name = "linear"}};
}
void FtrlRule::update(float* value, const float* gradient, float* const* slots, int64_t n,
                      const Step& step) const {
  update_ftrl(options, value, gradient, slots, n, step);
}
void FtrlRule::update(double* value, const double* gradient, double* const* slots, int64_t n,
                      const Step& step) const {
  update_ftrl(options, value, gradient, slots, n, step);
}

void FtrlRule::update_rows(const TableRows& table, const float* gradients, const Step& step) const {
  if (options.learning_rate_power != -0.5 || options.l2_shrinkage != 0) {
    return UpdateRule::update_rows(table, gradients, step);
  }
  kernels::for_each_row<2>(table, gradients, [&](float* w, const float* g, auto& slots, int64_t n) {
    ftrl<true, false>(w, g, slots[0], slots[1], n, step.learning_rate, options);
  });
}

}  // namespace keel
