#include <keel/autodiff/keras_ops/signal.h>

#include <cmath>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/base/function_ref.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/internal/window_functions.h>
#include <keel/framework/kernels/linalg/linalg.h>

namespace keel::keras_ops {
namespace {

// The transform of the last axis, not divided by its length. Its adjoint is the transform with the
// opposite sign.
Complex transform(const Complex& x, bool backward) {
  const auto [re, im] = internal::promoted_floating(x.first, x.second);
  internal::FunctionOp op = {.name = "fft", .outputs = {re.spec(), re.spec()}};
  op.compute = [backward](std::span<const Tensor> in) {
    const std::vector<double> real = internal::doubles_of(in[0]),
                              imag = internal::doubles_of(in[1]);
    std::vector<double> to_real(real.size()), to_imag(real.size());
    const int64_t n = in[0].dim(-1), rows = in[0].shape().drop_last().size();
    parallel_for(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1)),
                 [&](int64_t begin, int64_t end) {
                   std::vector<std::complex<double>> from(n), to(n);
                   for (int64_t r = begin; r < end; ++r) {
                     for (int64_t i = 0; i < n; ++i) from[i] = {real[r * n + i], imag[r * n + i]};
                     kernels::fourier(from.data(), n, backward, to.data());
                     for (int64_t i = 0; i < n; ++i) {
                       to_real[r * n + i] = to[i].real();
                       to_imag[r * n + i] = to[i].imag();
                     }
                   }
                 });
    const auto tensor = [&](const std::vector<double>& values) {
      return Tensor::from(values, in[0].shape()).cast(in[0].dtype());
    };
    return std::vector<Tensor>{tensor(to_real), tensor(to_imag)};
  };
  op.vjp = [backward](const VjpArgs& args) -> std::vector<Gradient> {
    const auto part = [&](int i) {
      const Gradient& dy = args.output_gradients[i];
      const TensorSpec& spec = args.output_specs[i];
      return dy ? dy.dense() : Tensor::zeros(spec.shape, spec.dtype);
    };
    const Complex dx = transform({part(0), part(1)}, !backward);
    return {dx.first, dx.second};
  };
  const std::vector<Tensor> out = internal::call(std::move(op), {re, im});
  return {out[0], out[1]};
}

Complex on_both(const Complex& x, FunctionRef<Tensor(const Tensor&)> fn) {
  return {fn(x.first), fn(x.second)};
}

Complex transform2(const Complex& x, bool backward) {
  const auto swapped = [](const Tensor& t) { return swapaxes(t, -1, -2); };
  return on_both(transform(on_both(transform(x, backward), swapped), backward), swapped);
}

// Cuts or pads the last axis.
Tensor resized(const Tensor& x, int64_t length) {
  const int64_t n = x.dim(-1);
  if (length <= n) return ops::slice(x, -1, 0, length);
  return ops::pad(x, -1, 0, length - n);
}

// Returns the window in the middle of fft_length elements.
Tensor window_of(const SignalWindow& window, int64_t length, int64_t fft_length, DType dtype) {
  if (length > fft_length) {
    throw ValueError("stft: sequence_length ", length, " exceeds fft_length ", fft_length,
                     "; use a longer fft_length");
  }
  Tensor values = window.values();
  if (!values) {
    if (!window.name().empty() && window.name() != "hann" && window.name() != "hamming") {
      throw ValueError("stft: window must be hann, hamming or a tensor, received '", window.name(),
                       "'");
    }
    values = Tensor::from(*keel::internal::cosine_window(
                              window.name().empty() ? "boxcar" : window.name(), length, true),
                          {length});
  }
  if (values.shape() != Shape{length}) {
    throw ValueError("stft: the window must have shape (", length, "), received ", values.shape());
  }
  const int64_t before = (fft_length - length) / 2;
  return ops::pad(ops::cast(values, dtype), 0, before, fft_length - length - before);
}

}  // namespace

Complex fft(const Complex& x) { return transform(x, false); }
Complex fft2(const Complex& x) { return transform2(x, false); }
Complex ifft2(const Complex& x) {
  const Complex sums = transform2(x, true);
  const auto count = static_cast<double>(x.first.dim(-1) * x.first.dim(-2));
  return on_both(sums, [count](const Tensor& t) { return t / count; });
}

Complex rfft(const Tensor& x, std::optional<int64_t> fft_length) {
  const int64_t n = fft_length.value_or(x.dim(-1));
  const Tensor real = resized(internal::floating(x), n);
  return on_both(transform({real, ops::zeros_like(real)}, false),
                 [n](const Tensor& t) { return ops::slice(t, -1, 0, n / 2 + 1); });
}

Tensor irfft(const Complex& x, std::optional<int64_t> fft_length) {
  const int64_t n = fft_length.value_or(2 * (x.first.dim(-1) - 1));
  const int64_t half = n / 2 + 1, mirrored = n - half;
  // The second half has the conjugates of the first one, in reverse order.
  const auto whole = [&](const Tensor& part, double sign) {
    const Tensor first = resized(internal::floating(part), half);
    const Tensor second = flip(ops::slice(first, -1, 1, mirrored), -1);
    return ops::concat({first, second * sign}, -1);
  };
  const Complex out = transform({whole(x.first, 1), whole(x.second, -1)}, true);
  return out.first / static_cast<double>(n);
}

Tensor extract_sequences(const Tensor& x, int64_t sequence_length, int64_t sequence_stride) {
  if (sequence_length < 1 || sequence_stride < 1 || sequence_length > x.dim(-1)) {
    throw ValueError(
        "extract_sequences: sequences of ", sequence_length, " with stride ", sequence_stride,
        " do not fit in shape ", x.shape(),
        "; both must be positive, and sequences must not be longer than the last axis");
  }
  const int64_t n = x.dim(-1), count = (n - sequence_length) / sequence_stride + 1;
  const Shape rows = x.shape().drop_last();
  std::vector<int64_t> positions;
  internal::for_each_index({rows.size(), count, sequence_length}, [&](const auto& i) {
    positions.push_back(i[0] * n + i[1] * sequence_stride + i[2]);
  });
  return internal::take_flat(x, positions, rows + Shape{count, sequence_length});
}

Complex stft(const Tensor& x, int64_t sequence_length, int64_t sequence_stride, int64_t fft_length,
             const SignalWindow& window, bool center) {
  Tensor in = internal::floating(x);
  if (center) {
    PadWidth width(in.rank(), {0, 0});
    width.back() = {fft_length / 2, fft_length / 2};
    in = pad(in, width, "reflect");
  }
  const Tensor values = window_of(window, sequence_length, fft_length, in.dtype());
  return rfft(extract_sequences(in, fft_length, sequence_stride) * values);
}

Tensor istft(const Complex& x, int64_t sequence_length, int64_t sequence_stride, int64_t fft_length,
             std::optional<int64_t> length, const SignalWindow& window, bool center) {
  const Tensor sequences = irfft(x, fft_length);
  const Tensor values = window_of(window, sequence_length, fft_length, sequences.dtype());
  const Shape rows = sequences.shape().slice(0, sequences.rank() - 2);
  const int64_t count = sequences.dim(-2), n = fft_length + sequence_stride * (count - 1);
  std::vector<int64_t> positions;
  internal::for_each_index({rows.size(), count, fft_length}, [&](const auto& i) {
    positions.push_back(i[0] * n + i[1] * sequence_stride + i[2]);
  });
  const Shape whole = rows + Shape{n};
  const Tensor weights = ops::broadcast_to(ops::square(values), sequences.shape());
  const Tensor total = internal::scatter_flat(sequences * values, positions, whole);
  Tensor out = ops::divide_no_nan(total, internal::scatter_flat(weights, positions, whole));
  const int64_t cut = center ? fft_length / 2 : 0;
  const int64_t end = length ? cut + *length : n - cut;
  return resized(ops::slice(resized(out, std::max(n, end)), -1, cut, end - cut), end - cut);
}

Complex polar(const Tensor& abs_, const Tensor& angle) {
  return {multiply(abs_, cos(angle)), multiply(abs_, sin(angle))};
}
Complex view_as_complex(const Tensor& x) {
  if (x.rank() == 0 || x.dim(-1) != 2) {
    throw ValueError("view_as_complex: the last axis must have dimension 2, received shape ",
                     x.shape());
  }
  const auto part = [&](int64_t i) { return ops::squeeze(ops::slice(x, -1, i, 1), -1); };
  return {part(0), part(1)};
}
Tensor view_as_real(const Complex& x) { return ops::stack({x.first, x.second}, x.first.rank()); }

}  // namespace keel::keras_ops
