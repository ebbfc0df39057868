#include <keel/layers/losses/ctc.h>

#include <algorithm>
#include <limits>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/exact_cast.h>
#include <keel/framework/internal/math.h>

namespace keel {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

// Returns log(e^a + e^b).
double log_add(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == kImpossible ? a : a + math::log(1 + math::exp(b - a));
}

// The states of an alignment of one sequence: its labels, with blanks around each of them.
class Alignment {
 public:
  explicit Alignment(std::span<const int64_t> labels) {
    const auto length = std::ranges::count_if(labels, [](int64_t label) { return label != 0; });
    classes_.push_back(0);
    for (int64_t i = 0; i < length; ++i) {
      classes_.push_back(labels[i]);
      classes_.push_back(0);
    }
  }
  int64_t size() const { return std::ssize(classes_); }
  int64_t class_of(int64_t state) const { return classes_[state]; }
  // Returns true if an alignment may go from state - 2 to `state`: the blank between two labels may
  // be left out if they differ.
  bool may_skip_to(int64_t state) const {
    return state >= 2 && classes_[state] != 0 && classes_[state] != classes_[state - 2];
  }

 private:
  std::vector<int64_t> classes_;
};

// The forward-backward algorithm for one sequence. log_p is [steps, classes]. Writes the expected
// number of times that each class is emitted in each step, and returns minus the log of the
// probability of the labels.
template <class T>
double forward_backward(const T* log_p, int64_t steps, int64_t classes, const Alignment& states,
                        T* expected) {
  const int64_t n = states.size();
  std::fill_n(expected, steps * classes, T{0});
  if (steps == 0) return n == 1 ? 0 : -kImpossible;
  // forward[t][s] includes the emission in step t, backward[t][s] does not.
  std::vector<double> forward(steps * n, kImpossible), backward(steps * n, kImpossible);
  const auto emission = [&](int64_t t, int64_t s) -> double {
    return log_p[t * classes + states.class_of(s)];
  };
  for (int64_t s = 0; s < std::min<int64_t>(n, 2); ++s) forward[s] = emission(0, s);
  for (int64_t t = 1; t < steps; ++t) {
    const double* before = forward.data() + (t - 1) * n;
    for (int64_t s = 0; s < n; ++s) {
      double sum = before[s];
      if (s > 0) sum = log_add(sum, before[s - 1]);
      if (states.may_skip_to(s)) sum = log_add(sum, before[s - 2]);
      forward[t * n + s] = sum + emission(t, s);
    }
  }
  const double* last = forward.data() + (steps - 1) * n;
  const double total = n > 1 ? log_add(last[n - 1], last[n - 2]) : last[0];
  if (total == kImpossible) return -kImpossible;
  for (int64_t s = std::max<int64_t>(n - 2, 0); s < n; ++s) backward[(steps - 1) * n + s] = 0;
  for (int64_t t = steps - 2; t >= 0; --t) {
    const auto after = [&](int64_t s) { return backward[(t + 1) * n + s] + emission(t + 1, s); };
    for (int64_t s = 0; s < n; ++s) {
      double sum = after(s);
      if (s + 1 < n) sum = log_add(sum, after(s + 1));
      if (s + 2 < n && states.may_skip_to(s + 2)) sum = log_add(sum, after(s + 2));
      backward[t * n + s] = sum;
    }
  }
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t s = 0; s < n; ++s) {
      const double log_share = forward[t * n + s] + backward[t * n + s] - total;
      expected[t * classes + states.class_of(s)] += static_cast<T>(math::exp(log_share));
    }
  }
  return -total;
}

// Computes the losses from log probabilities, and as a second output the expected number of
// emissions, from which the gradient is made.
class CtcOp final : public Op {
 public:
  CtcOp() : Op("CTC") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = in[0].shape.slice(0, 1), .dtype = in[0].dtype}, in[0]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor &log_p = in[0], &labels = in[1];
    const int64_t batch = log_p.dim(0), steps = log_p.dim(1), classes = log_p.dim(2);
    const int64_t length = labels.dim(1);
    for (const int64_t label : labels.data<int64_t>()) {
      if (label >= 0 && label < classes) continue;
      throw ValueError("ctc: labels must be in [0, ", classes, "), received ", label);
    }
    Tensor losses = Tensor::uninitialized(log_p.shape().slice(0, 1), log_p.dtype());
    Tensor expected = Tensor::uninitialized(log_p.shape(), log_p.dtype());
    const auto compute_as = [&]<class T>(const T&) {
      const T* const first = log_p.data<T>().data();
      T* const out = losses.mutable_data<T>().data();
      T* const counts = expected.mutable_data<T>().data();
      parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Alignment states(labels.data<int64_t>().subspan(i * length, length));
          const int64_t at = i * steps * classes;
          out[i] =
              static_cast<T>(forward_backward(first + at, steps, classes, states, counts + at));
        }
      });
    };
    log_p.dtype() == DType::kFloat64 ? compute_as(double{}) : compute_as(float{});
    return {losses, expected};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    if (args.output_gradients[1]) {
      throw NotImplementedError(
          "CTC: second derivatives are not available; differentiate the loss by one tape only");
    }
    const Tensor dy =
        ops::reshape(args.output_gradients[0].dense(), args.output_specs[0].shape + Shape({1, 1}));
    return {-(args.outputs[1] * dy), Gradient()};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 2}; }
};

void check_sequences(const Tensor& y_true, const Tensor& y_pred) {
  if (!is_floating(y_pred.dtype())) {
    throw TypeError("ctc: predictions must be float32 or float64, received ", y_pred.dtype());
  }
  if (y_true.rank() != 2 || y_pred.rank() != 3 ||
      !compatible(y_true.shape().slice(0, 1), y_pred.shape().slice(0, 1))) {
    throw ValueError(
        "ctc: labels must be [batch, length] and predictions [batch, steps, classes], received ",
        y_true.shape(), " and ", y_pred.shape());
  }
}

}  // namespace

namespace losses {

Tensor ctc(const Tensor& y_true, const Tensor& y_pred) {
  check_sequences(y_true, y_pred);
  const Tensor labels =
      y_true.is_symbolic() ? ops::cast(y_true, DType::kInt64) : integer_ids("ctc", y_true);
  const std::vector<Tensor> outputs =
      dispatch(std::make_shared<const CtcOp>(), {ops::log_softmax(y_pred), labels});
  return outputs[0];
}

}  // namespace losses

KEEL_REGISTER_ALL(Loss, ctc_losses) { registry.add_all<CTCLoss>({.package = "keras"}); }

}  // namespace keel
