#include <keel/layers/convolution/windows.h>

#include <algorithm>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/internal/data_format.h>

namespace keel {
namespace {

constexpr int64_t kGrain = 16384;  // number of elements in one block of a parallel loop

// Calls fn(step, place) for each position k of each window of each sequence, in this order, if it
// lies within the steps. `step` counts the steps of all sequences, and `place` the positions of all
// windows. Sequences run in parallel, so no two calls for the same sequence overlap.
template <class Fn>
void for_each_place(const Windows& w, int64_t batch, int64_t steps, int64_t channels,
                    const Fn& fn) {
  const int64_t count = w.count(steps);
  const int64_t work = std::max<int64_t>(1, count * w.size * channels);
  parallel_for(batch, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t k = 0; k < w.size; ++k) {
          const int64_t step = i * w.stride + k * w.dilation - w.before;
          if (step < 0 || step >= steps) continue;
          fn(b * steps + step, (b * count + i) * w.size + k);
        }
      }
    }
  });
}

Tensor sum_windows(const Tensor& y, const Windows& windows, int64_t steps);

class ExtractWindows final : public Op {
 public:
  explicit ExtractWindows(const Windows& windows) : Op("ExtractWindows"), windows_(windows) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const Shape& x = in[0].shape;
    const int64_t count = x[1] == kUnknown ? kUnknown : windows_.count(x[1]);
    return {{.shape = {x[0], count, windows_.size, x[2]}, .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& x = in[0].shape();
    Tensor y = Tensor::zeros({x[0], windows_.count(x[1]), windows_.size, x[2]}, in[0].dtype());
    visit_floating(y.dtype(), "extract_windows", [&]<class T>(const T&) {
      const T* from = in[0].data<T>().data();
      T* to = y.mutable_data<T>().data();
      for_each_place(windows_, x[0], x[1], x[2], [&, width = x[2]](int64_t step, int64_t place) {
        std::copy_n(from + step * width, width, to + place * width);
      });
    });
    return {y};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {sum_windows(args.output_gradients[0].dense(), windows_, args.input_specs[0].shape[1])};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  const Windows windows_;
};

// The transpose of ExtractWindows: each step is the sum of the window positions that cover it.
class SumWindows final : public Op {
 public:
  SumWindows(const Windows& windows, int64_t steps)
      : Op("SumWindows"), windows_(windows), steps_(steps) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = {in[0].shape[0], steps_, in[0].shape[3]}, .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& y = in[0].shape();
    Tensor x = Tensor::zeros({y[0], steps_, y[3]}, in[0].dtype());
    visit_floating(x.dtype(), "sum_windows", [&]<class T>(const T&) {
      const T* from = in[0].data<T>().data();
      T* to = x.mutable_data<T>().data();
      for_each_place(windows_, y[0], steps_, y[3], [&, width = y[3]](int64_t step, int64_t place) {
        for (int64_t c = 0; c < width; ++c) to[step * width + c] += from[place * width + c];
      });
    });
    return {x};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {extract_windows(args.output_gradients[0].dense(), windows_)};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  const Windows windows_;
  const int64_t steps_;
};

Tensor sum_windows(const Tensor& y, const Windows& windows, int64_t steps) {
  return dispatch1(SumWindows(windows, steps), {y});
}

}  // namespace

int64_t Windows::count(int64_t steps) const {
  const int64_t padded = before + steps + after;
  return padded < span() ? 0 : (padded - span()) / stride + 1;
}

Tensor extract_windows(const Tensor& x, const Windows& windows) {
  return dispatch1(ExtractWindows(windows), {x});
}

void check_window_options(const WindowOptions& options, bool causal, const std::string& caller) {
  const auto check_positive = [&](const char* option, int64_t value) {
    if (value > 0) return;
    throw ValueError(caller, ": ", option, " must be positive, received ", value);
  };
  check_positive("kernel_size", options.kernel_size);
  check_positive("strides", options.strides);
  check_positive("dilation_rate", options.dilation_rate);
  if (options.strides > 1 && options.dilation_rate > 1) {
    throw ValueError(caller, ": strides and dilation_rate cannot both be above 1, received ",
                     options.strides, " and ", options.dilation_rate);
  }
  const bool known = options.padding == "valid" || options.padding == "same" ||
                     (causal && options.padding == "causal");
  if (!known) {
    throw ValueError(caller, ": padding must be valid", causal ? ", same or causal" : " or same",
                     ", received '", options.padding, "'");
  }
  const bool last = is_channels_last(options.data_format, caller);
  if (options.padding == "causal" && !last) {
    throw ValueError(caller, ": padding 'causal' requires data_format channels_last");
  }
}

Windows windows_for(const WindowOptions& options, int64_t steps, const std::string& caller) {
  Windows out = {
      .size = options.kernel_size, .stride = options.strides, .dilation = options.dilation_rate};
  if (options.padding == "causal") {
    out.before = out.span() - 1;
  } else if (options.padding == "same") {
    const int64_t count = (steps + out.stride - 1) / out.stride;
    const int64_t missing = (count - 1) * out.stride + out.span() - steps;
    out.before = std::max<int64_t>(missing, 0) / 2;
    out.after = std::max<int64_t>(missing, 0) - out.before;
  }
  if (out.count(steps) == 0) {
    throw ValueError(caller, ": a window of ", out.span(), " steps does not fit into an input of ",
                     steps, " steps; pass longer inputs or pad them");
  }
  return out;
}

Tensor to_channels_last(const Tensor& x, const WindowOptions& options) {
  return options.data_format == "channels_last" ? x : ops::transpose(x, {0, 2, 1});
}

Tensor from_channels_last(const Tensor& x, const WindowOptions& options) {
  return to_channels_last(x, options);  // the same swap of axes
}

int64_t channels_of(const Shape& input, const WindowOptions& options, const std::string& caller) {
  const int axis = options.data_format == "channels_last" ? 2 : 1;
  if (input.rank() == 3 && input[axis] != kUnknown) return input[axis];
  throw ValueError(caller, ": the input must have rank 3 and a known number of channels on axis ",
                   axis, ", received ", input);
}

void check_channels(const Shape& input, int64_t built_for, const WindowOptions& options,
                    const std::string& caller) {
  if (channels_of(input, options, caller) == built_for) return;
  throw ValueError(caller, ": the layer was built for ", built_for, " channels, received ", input);
}

Shape convolved_shape(const Shape& input, int64_t channels, const WindowOptions& options,
                      const std::string& caller) {
  const bool last = options.data_format == "channels_last";
  const int64_t steps = input[last ? 1 : 2];
  const int64_t count =
      steps == kUnknown ? kUnknown : windows_for(options, steps, caller).count(steps);
  return last ? Shape{input[0], count, channels} : Shape{input[0], channels, count};
}

Tensor depthwise_convolution(const Tensor& x, const Tensor& kernel, const WindowOptions& options,
                             const std::string& caller) {
  const Tensor windows = extract_windows(x, windows_for(options, x.dim(1), caller));
  const Tensor y = ops::einsum("bikc,kcm->bicm", windows, kernel);
  return ops::reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
}

}  // namespace keel
