#include <keel/framework/kernels/update_rules/whole_variable_rules.h>

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <keel/framework/base/errors.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/smallest_root.h>
#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel {
namespace {

double count_of_step(const Step& step) { return static_cast<double>(step.iteration) + 1; }

template <class T>
double root_mean_square(const T* values, int64_t n) {
  return n == 0 ? 0 : std::sqrt(kernels::sum_of_squares(values, n) / static_cast<double>(n));
}

// The last two axes of a variable: `matrices` matrices follow each other.
struct MatrixDims {
  explicit MatrixDims(const Shape& shape)
      : rows(shape[-2]), columns(shape[-1]), matrices(shape.slice(0, shape.rank() - 2).size()) {}
  int64_t rows, columns, matrices;
};

// Updates v from the averages of rows and columns. The means are taken in double, so that their
// error does not grow with the size of the matrix.
template <class T>
void factored_squares(const AdafactorRuleOptions& o, const MatrixDims& dims, double b, const T* g,
                      T* const* slots) {
  std::vector<double> of_columns(dims.columns);
  for (int64_t k = 0; k < dims.matrices; ++k) {
    const T* gradient = g + k * dims.rows * dims.columns;
    T* row = slots[0] + k * dims.rows;
    T* column = slots[1] + k * dims.columns;
    T* v = slots[2] + k * dims.rows * dims.columns;
    std::ranges::fill(of_columns, 0.0);
    double sum_of_rows = 0;
    for (int64_t r = 0; r < dims.rows; ++r) {
      double of_row = 0;
      for (int64_t c = 0; c < dims.columns; ++c) {
        const double x = gradient[r * dims.columns + c];
        const double square = x * x + o.epsilon_1;
        of_row += square;
        of_columns[c] += square;
      }
      row[r] = static_cast<T>(b * row[r] + (1 - b) * of_row / static_cast<double>(dims.columns));
      sum_of_rows += row[r];
    }
    for (int64_t c = 0; c < dims.columns; ++c) {
      column[c] =
          static_cast<T>(b * column[c] + (1 - b) * of_columns[c] / static_cast<double>(dims.rows));
    }
    const double mean_of_rows = sum_of_rows / static_cast<double>(dims.rows);
    for (int64_t r = 0; r < dims.rows; ++r) {
      const double share = mean_of_rows > 0 ? row[r] / mean_of_rows : 0;
      for (int64_t c = 0; c < dims.columns; ++c) {
        v[r * dims.columns + c] = static_cast<T>(share * column[c]);
      }
    }
  }
}

template <class T>
void update_adafactor(const AdafactorRuleOptions& o, T* w, T* g, T* const* slots,
                      const VariableInfo& variable, const Step& step) {
  const int64_t n = variable.shape.size();
  if (n == 0) return;
  const double t = count_of_step(step);
  const double b = 1 - math::pow(t, o.beta_2_decay);
  T* v = slots[2];
  if (variable.shape.rank() >= 2) {
    factored_squares(o, MatrixDims(variable.shape), b, g, slots);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const double x = g[i];
      v[i] = static_cast<T>(b * v[i] + (1 - b) * (x * x + o.epsilon_1));
    }
  }
  const T smallest = kernels::smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) g[i] /= std::max(std::sqrt(v[i]), smallest);
  const double rho = std::min(step.learning_rate, 1 / std::sqrt(t));
  const double alpha = std::max(o.epsilon_2, root_mean_square(w, n)) * rho;
  const T rate = static_cast<T>(alpha / std::max(1.0, root_mean_square(g, n) / o.clip_threshold));
  for (int64_t i = 0; i < n; ++i) w[i] -= rate * g[i];
}

// Returns x x^T for a matrix of `rows` rows.
std::vector<double> gram(const std::vector<double>& x, int64_t rows, int64_t columns) {
  std::vector<double> out(rows * rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < columns; ++c) sum += x[i * columns + c] * x[j * columns + c];
      out[i * rows + j] = out[j * rows + i] = sum;
    }
  }
  return out;
}

// Returns a b for a square matrix a of `rows` rows and a matrix b of `columns` columns.
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                            int64_t rows, int64_t columns) {
  std::vector<double> out(rows * columns);
  for (int64_t i = 0; i < rows; ++i) {
    double* const to = out.data() + i * columns;
    for (int64_t k = 0; k < rows; ++k) {
      const double factor = a[i * rows + k];
      const double* const from = b.data() + k * columns;
      for (int64_t c = 0; c < columns; ++c) to[c] += factor * from[c];
    }
  }
  return out;
}

// Replaces the matrix by an approximation of its nearest orthogonal matrix. Computes in double: the
// polynomial amplifies rounding errors by muon_a in every step.
template <class T>
void orthogonalize(const MuonRuleOptions& o, T* matrix, int64_t rows, int64_t columns) {
  // The iteration runs on the shorter side, whose Gram matrix is smaller.
  const bool transposed = rows > columns;
  const int64_t n = std::min(rows, columns), m = std::max(rows, columns);
  const auto at = [&](int64_t i, int64_t j) { return transposed ? j * n + i : i * m + j; };
  const double norm = std::sqrt(kernels::sum_of_squares(matrix, rows * columns)) + 1e-7;
  std::vector<double> x(rows * columns);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) x[i * m + j] = matrix[at(i, j)] / norm;
  }
  for (int64_t step = 0; step < o.ns_steps; ++step) {
    const std::vector<double> y = gram(x, n, m);
    std::vector<double> z = product(y, y, n, n);
    for (size_t i = 0; i < z.size(); ++i) z[i] = o.muon_b * y[i] + o.muon_c * z[i];
    const std::vector<double> change = product(z, x, n, m);
    for (size_t i = 0; i < x.size(); ++i) x[i] = o.muon_a * x[i] + change[i];
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < m; ++j) matrix[at(i, j)] = static_cast<T>(x[i * m + j]);
  }
}

template <class T>
void update_muon_matrix(const MuonRuleOptions& o, T* w, T* g, T* m, const Shape& shape,
                        const Step& step) {
  const int64_t n = shape.size();
  const T momentum = static_cast<T>(o.momentum);
  for (int64_t i = 0; i < n; ++i) {
    m[i] = momentum * m[i] + g[i];
    g[i] = o.nesterov ? g[i] + momentum * m[i] : m[i];
  }
  orthogonalize(o, g, shape[0], shape[1]);
  const auto longest = static_cast<double>(std::max(shape[0], shape[1]));
  const double factor = o.rms_rate ? *o.rms_rate * std::sqrt(longest) : 1;
  const T rate = static_cast<T>(step.learning_rate * factor);
  for (int64_t i = 0; i < n; ++i) w[i] -= rate * g[i];
}

template <class T>
void update_muon(const MuonRule& rule, T* w, T* g, T* const* slots, const VariableInfo& variable,
                 const Step& step) {
  const MuonRuleOptions& o = rule.options;
  if (variable.shape.size() == 0) return;
  if (!rule.takes_adam_step(variable)) {
    update_muon_matrix(o, w, g, slots[0], variable.shape, step);
    return;
  }
  const AdamRule adam({.beta_1 = o.adam_beta_1, .beta_2 = o.adam_beta_2, .epsilon = o.epsilon});
  Step own = step;
  own.learning_rate *= o.adam_lr_ratio;
  adam.update(w, g, slots, variable.shape.size(), own);
}

template <class T>
void update_schedule_free(const ScheduleFreeAdamWRuleOptions& o, T* __restrict w,
                          const T* __restrict g, T* const* slots, int64_t n, const Step& step) {
  T* __restrict z = slots[0];
  T* __restrict v = slots[1];
  const double t = count_of_step(step);
  const double warmup =
      o.warmup_steps > 0 ? std::min(1.0, t / static_cast<double>(o.warmup_steps)) : 1;
  const T lr = static_cast<T>(step.learning_rate * warmup);
  const T b1 = static_cast<T>(o.beta_1);
  const T c1 = static_cast<T>(1 - o.beta_1);
  const T b2 = static_cast<T>(o.beta_2);
  const T c2 = static_cast<T>(1 - o.beta_2);
  const T epsilon = static_cast<T>(o.epsilon);
  const T correction = static_cast<T>(1 - math::pow(o.beta_2, t));
  const T weight = static_cast<T>(1 / t);
  const T rest = static_cast<T>(1 - 1 / t);
  const T smallest = kernels::smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    const T x = (w[i] - c1 * z[i]) / b1;
    v[i] = b2 * v[i] + c2 * (g[i] * g[i]);
    z[i] -= lr * g[i] / std::max(std::sqrt(v[i] / correction) + epsilon, smallest);
    w[i] = c1 * z[i] + b1 * (rest * x + weight * z[i]);
  }
}

[[noreturn]] void not_a_variable() {
  throw RuntimeError(
      "WholeVariableRule.update: the rule requires a whole variable; call update_variable()");
}

}  // namespace

std::optional<Shape> VariableSlots::slot_shape(size_t, const VariableInfo& variable) const {
  return variable.shape;
}
bool VariableSlots::starts_with_variable(size_t) const { return false; }

double WholeVariableRule::weight_decay(const VariableInfo&, double option) const { return option; }
void WholeVariableRule::update(float*, const float*, float* const*, int64_t, const Step&) const {
  not_a_variable();
}
void WholeVariableRule::update(double*, const double*, double* const*, int64_t, const Step&) const {
  not_a_variable();
}

std::vector<Slot> AdafactorRule::slots() const {
  return {{.name = "row"}, {.name = "column"}, {.name = "velocity"}};
}
std::optional<Shape> AdafactorRule::slot_shape(size_t slot, const VariableInfo& variable) const {
  const Shape& shape = variable.shape;
  if (slot == 2) return shape;
  // Keras keeps placeholders for vectors, so that its files have three slots of each variable.
  if (shape.rank() < 2) return Shape();
  return slot == 0 ? shape.drop_last() : shape.without(-2);
}
void AdafactorRule::update_variable(float* value, float* gradient, float* const* slots,
                                    const VariableInfo& variable, const Step& step) const {
  update_adafactor(options, value, gradient, slots, variable, step);
}
void AdafactorRule::update_variable(double* value, double* gradient, double* const* slots,
                                    const VariableInfo& variable, const Step& step) const {
  update_adafactor(options, value, gradient, slots, variable, step);
}

MuonRule::MuonRule(const MuonRuleOptions& o) : options(o) {
  for (const std::string& pattern : o.exclude_layers) {
    try {
      excluded_.emplace_back(pattern);
    } catch (const std::runtime_error& error) {
      throw ValueError("Muon: exclude_layers: '", pattern,
                       "' is not a regular expression: ", error.what(), "; use ECMAScript syntax");
    }
  }
}
bool MuonRule::takes_adam_step(const VariableInfo& variable) const {
  if (variable.shape.rank() != 2) return true;
  if (options.exclude_embeddings &&
      absl::StrContains(absl::AsciiStrToLower(variable.path), "embedding")) {
    return true;
  }
  return std::ranges::any_of(excluded_, [&](const RegularExpression& part) {
    return part.matches_part_of(variable.path);
  });
}
std::vector<Slot> MuonRule::slots() const { return {{.name = "momentum"}, {.name = "velocity"}}; }
std::optional<Shape> MuonRule::slot_shape(size_t slot, const VariableInfo& variable) const {
  if (slot == 1 && !takes_adam_step(variable)) return {};
  return variable.shape;
}
double MuonRule::weight_decay(const VariableInfo& variable, double option) const {
  return takes_adam_step(variable) ? options.adam_weight_decay : option;
}
void MuonRule::update_variable(float* value, float* gradient, float* const* slots,
                               const VariableInfo& variable, const Step& step) const {
  update_muon(*this, value, gradient, slots, variable, step);
}
void MuonRule::update_variable(double* value, double* gradient, double* const* slots,
                               const VariableInfo& variable, const Step& step) const {
  update_muon(*this, value, gradient, slots, variable, step);
}

std::vector<Slot> ScheduleFreeAdamWRule::slots() const {
  return {{.name = "momentum"}, {.name = "velocity"}};
}
void ScheduleFreeAdamWRule::update(float* value, const float* gradient, float* const* slots,
                                   int64_t n, const Step& step) const {
  update_schedule_free(options, value, gradient, slots, n, step);
}
void ScheduleFreeAdamWRule::update(double* value, const double* gradient, double* const* slots,
                                   int64_t n, const Step& step) const {
  update_schedule_free(options, value, gradient, slots, n, step);
}

}  // namespace keel
