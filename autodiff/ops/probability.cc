#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/framework/internal/math.h>

namespace keel {
namespace {

using ops::internal::kGrain;

// Calls fn(x, y, n) for each row of n elements along the last axis.
template <class T, class Fn>
void for_each_row(const Tensor& x, Tensor& y, const Fn& fn) {
  const int64_t n = x.dim(-1);
  if (x.size() == 0) return;
  const T* from = x.data<T>().data();
  T* to = y.mutable_data<T>().data();
  parallel_for(x.size() / n, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) fn(from + r * n, to + r * n, n);
  });
}

template <class T>
T greatest(const T* x, int64_t n) {
  T out = x[0];
  for (int64_t i = 1; i < n; ++i) out = x[i] > out ? x[i] : out;
  return out;
}

// Returns the sum of a . b, or of a if b is null, accumulated in double.
template <class T>
double row_sum(const T* a, const T* b, int64_t n) {
  double lanes[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int l = 0; l < 4; ++l) lanes[l] += a[i + l] * (b == nullptr ? T{1} : b[i + l]);
  }
  for (; i < n; ++i) lanes[i % 4] += a[i] * (b == nullptr ? T{1} : b[i]);
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

void check_row(const char* caller, const TensorSpec& x) {
  ops::internal::check_floating(caller, x);
  if (x.shape.rank() == 0) throw ValueError(caller, ": requires an axis, received a scalar");
}

Tensor softmax_gradient(const Tensor& y, const Tensor& dy);

// softmax along the last axis.
class Softmax final : public Op {
 public:
  Softmax() : Op("Softmax") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    check_row("softmax", in[0]);
    return {in[0]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(y.dtype(), "softmax", [&]<class T>(const T&) {
      for_each_row<T>(in[0], y, [](const T* x, T* out, int64_t n) {
        const T top = greatest(x, n);
        for (int64_t i = 0; i < n; ++i) out[i] = math::exp(x[i] - top);
        const T factor = static_cast<T>(1 / row_sum<T>(out, nullptr, n));
        for (int64_t i = 0; i < n; ++i) out[i] *= factor;
      });
    });
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {softmax_gradient(args.outputs[0], args.output_gradients[0].dense())};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 1}; }
};

// Computes y (dy - sum(dy y)), the gradient of softmax.
class SoftmaxGradient final : public Op {
 public:
  SoftmaxGradient() : Op("SoftmaxGradient") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor dx = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(dx.dtype(), "softmax", [&]<class T>(const T&) {
      const T *first_y = in[0].data<T>().data(), *first_dy = in[1].data<T>().data();
      for_each_row<T>(in[0], dx, [&](const T* y, T* out, int64_t n) {
        const T* dy = first_dy + (y - first_y);
        const T total = static_cast<T>(row_sum(dy, y, n));
        for (int64_t i = 0; i < n; ++i) out[i] = y[i] * (dy[i] - total);
      });
    });
    return {dx};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor &y = args.inputs[0], &dy = args.inputs[1];
    const Tensor g = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) {
      out[0] = g * (dy - ops::sum(dy * y, {-1}, true)) - dy * ops::sum(g * y, {-1}, true);
    }
    if (args.wants(1)) out[1] = softmax_gradient(y, g);
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }
};

Tensor softmax_gradient(const Tensor& y, const Tensor& dy) {
  return dispatch1(SoftmaxGradient(), {y, dy});
}

class LogSoftmax final : public Op {
 public:
  LogSoftmax() : Op("LogSoftmax") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    check_row("log_softmax", in[0]);
    return {in[0]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(y.dtype(), "log_softmax", [&]<class T>(const T&) {
      for_each_row<T>(in[0], y, [](const T* x, T* out, int64_t n) {
        const T top = greatest(x, n);
        for (int64_t i = 0; i < n; ++i) out[i] = math::exp(x[i] - top);
        const T shift = static_cast<T>(math::log(row_sum<T>(out, nullptr, n)));
        for (int64_t i = 0; i < n; ++i) out[i] = x[i] - top - shift;
      });
    });
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor dy = args.output_gradients[0].dense();
    return {dy - ops::exp(args.outputs[0]) * ops::sum(dy, {-1}, true)};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 1}; }
};

// Returns the size of the support of sparsemax for a row in descending order: the last k with
// 1 + k x_k > x_1 + ... + x_k. Elements are taken relative to the greatest one, which avoids a loss
// of precision.
template <class T>
int64_t support_of(const T* sorted, int64_t n) {
  double sum = 0;
  int64_t k = 0;
  while (k < n) {
    const double z = sorted[k] - sorted[0];
    if (1 + static_cast<double>(k + 1) * z <= sum + z) break;
    sum += z;
    ++k;
  }
  return k;
}

// Computes max(x - t, 0). The threshold of Martins and Astudillo (2016) is (c_k - 1) / k, where c_j
// is the sum of the j greatest elements and k the size of the support. Keras uses c_1 + ... + c_k
// instead of c_k, and so does this op, so that models trained in Keras give the same predictions.
// If the support has more than one element, the result therefore does not sum to 1.
class Sparsemax final : public Op {
 public:
  Sparsemax() : Op("Sparsemax") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    check_row("sparsemax", in[0]);
    return {in[0]};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(y.dtype(), "sparsemax", [&]<class T>(const T&) {
      for_each_row<T>(in[0], y, [](const T* x, T* out, int64_t n) {
        std::copy(x, x + n, out);
        std::sort(out, out + n, std::greater<T>());
        const int64_t k = support_of(out, n);
        double sum = 0, total = 0;
        for (int64_t j = 0; j < k; ++j) {
          sum += out[j];
          total += sum;
        }
        const double threshold = (total - 1) / static_cast<double>(k);
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(std::max(x[i] - threshold, 0.0));
      });
    });
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor &x = args.inputs[0], &y = args.outputs[0];
    const Tensor zero = Tensor::zeros({}, y.dtype());
    const Tensor inside = ops::where(ops::greater(y, zero), args.output_gradients[0].dense(), zero);
    return {inside - threshold_gradient(x) * ops::sum(inside, {-1}, true)};
  }
  Retain retain() const override { return {.inputs = 1, .outputs = 1}; }

 private:
  // Returns dt/dx. The element of rank r (from 1) occurs in the sums c_r to c_k, so its derivative
  // is (k - r + 1) / k; elements outside the support have derivative 0.
  static Tensor threshold_gradient(const Tensor& x) {
    Tensor out = Tensor::zeros(x.shape(), x.dtype());
    visit_floating(x.dtype(), "sparsemax", [&]<class T>(const T&) {
      for_each_row<T>(x, out, [](const T* row, T* gradient, int64_t n) {
        std::vector<int64_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        std::ranges::stable_sort(order, std::greater<T>(), [&](int64_t i) { return row[i]; });
        std::vector<T> sorted(n);
        for (int64_t j = 0; j < n; ++j) sorted[j] = row[order[j]];
        const int64_t k = support_of(sorted.data(), n);
        for (int64_t j = 0; j < k; ++j) {
          gradient[order[j]] = static_cast<T>(k - j) / static_cast<T>(k);
        }
      });
    });
    return out;
  }
};

// Applies fn to x with `axis` moved to the end, and moves it back.
template <class Fn>
Tensor along(const Tensor& x, int axis, const Fn& fn) {
  if (x.rank() == 0) return fn(x);
  const int at = x.shape().normalize_axis(axis);
  if (at == x.rank() - 1) return fn(x);
  std::vector<int> swapped(x.rank());
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[at], swapped.back());
  return ops::transpose(fn(ops::transpose(x, swapped)), swapped);
}

// The inputs are labels and logits.
class SigmoidCrossEntropy final : public Op {
 public:
  SigmoidCrossEntropy() : Op("SigmoidCrossEntropy") {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("sigmoid_cross_entropy", in[1]);
    ops::internal::check_same_dtype("sigmoid_cross_entropy", in[0], in[1]);
    if (!compatible(in[0].shape, in[1].shape)) {
      throw ValueError(
          "sigmoid_cross_entropy: labels and logits must have the same shape, received ",
          in[0].shape, " and ", in[1].shape);
    }
    return {{.shape = broadcast_shapes(in[0].shape, in[1].shape, "sigmoid_cross_entropy"),
             .dtype = in[1].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& shape = in[1].shape();
    const auto plan = ops::internal::plan_broadcast(shape, {shape, shape});
    Tensor loss = Tensor::uninitialized(shape, in[1].dtype());
    visit_floating(loss.dtype(), "sigmoid_cross_entropy", [&]<class T>(const T&) {
      ops::internal::map(plan, in[0].data<T>().data(), in[1].data<T>().data(),
                         loss.mutable_data<T>().data(), [](T y, T z) {
                           return (z < 0 ? T{0} : z) - z * y + math::log1p(math::exp(-std::abs(z)));
                         });
    });
    return {loss};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor &labels = args.inputs[0], &logits = args.inputs[1];
    const Tensor dy = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) out[0] = -(dy * logits);
    if (args.wants(1)) out[1] = dy * (ops::sigmoid(logits) - labels);
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }
};

}  // namespace

namespace ops {

Tensor softmax(const Tensor& x, int axis) {
  return along(x, axis, [](const Tensor& rows) { return dispatch1(Softmax(), {rows}); });
}
Tensor log_softmax(const Tensor& x, int axis) {
  return along(x, axis, [](const Tensor& rows) { return dispatch1(LogSoftmax(), {rows}); });
}
Tensor sparsemax(const Tensor& x, int axis) {
  return along(x, axis, [](const Tensor& rows) { return dispatch1(Sparsemax(), {rows}); });
}
Tensor sigmoid_cross_entropy(const Tensor& labels, const Tensor& logits) {
  return dispatch1(SigmoidCrossEntropy(), {labels, logits});
}

}  // namespace ops
}  // namespace keel
