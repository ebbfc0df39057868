#include <keel/framework/kernels/convolution/convolution.h>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/framework/kernels/convolution/depthwise.h>
#include <keel/framework/kernels/half.h>

namespace keel {
namespace {

using ops::SpatialWindow;
using ops::SpatialWindows;

// Base class of the three ops. Each is linear in both of its inputs, and each is the gradient of
// the two others.
class ConvolutionBase : public Op {
 public:
  struct Settings {
    const char* caller;
    SpatialWindows windows;
    int64_t groups = 1;
    bool depthwise = false;  // groups is not used
    ProductOperands operands = AutocastScope::operands();
    bool bfloat16 = operands == ProductOperands::kBFloat16;
  };
  ConvolutionBase(const char* name, Settings settings) : Op(name), settings_(std::move(settings)) {}

 protected:
  int spatial_axes() const { return static_cast<int>(settings_.windows.size()); }
  const char* caller() const { return settings_.caller; }

  Shape output_shape(const Shape& x, const Shape& kernel) const {
    Shape out = {x[0]};
    for (int i = 0; i < spatial_axes(); ++i) {
      out = out + Shape{settings_.windows[i].count(x[i + 1])};
    }
    return out + Shape{filters(kernel)};
  }
  int64_t channels(const Shape& kernel) const {
    return settings_.depthwise ? kernel[-2] : kernel[-2] * settings_.groups;
  }
  int64_t filters(const Shape& kernel) const {
    return settings_.depthwise ? kernel[-2] * kernel[-1] : kernel[-1];
  }

  void check_kernel(const Shape& kernel) const {
    bool fits = kernel.rank() == spatial_axes() + 2 && spatial_axes() >= 1 && spatial_axes() <= 3 &&
                kernel.fully_defined();
    for (int i = 0; fits && i < spatial_axes(); ++i) fits = kernel[i] == settings_.windows[i].size;
    if (fits && (settings_.depthwise || kernel[-1] % settings_.groups == 0)) return;
    throw ValueError(caller(), ": the kernel must have ", spatial_axes(),
                     " spatial axes with the sizes of the windows, input channels and filters, of "
                     "which there must be a multiple of ",
                     settings_.groups, "; received shape ", kernel);
  }
  void check_input(const char* what, const Shape& x, int64_t channels) const {
    if (x.rank() == spatial_axes() + 2 && (x[-1] == channels || x[-1] == kUnknown)) return;
    throw ValueError(caller(), ": ", what, " must have rank ", spatial_axes() + 2, " and ",
                     channels, " channels, received shape ", x);
  }

  // Returns an operand as products read it. The kernels of other convolutions round their operands
  // to bfloat16 themselves.
  Tensor operand(const Tensor& x) const {
    if (!settings_.bfloat16) return ops::internal::product_operand(x, settings_.operands);
    if (!settings_.depthwise || x.dtype() != DType::kFloat32) return x;
    Tensor out = Tensor::uninitialized(x.shape(), x.dtype());
    std::vector<kernels::BFloat16> rounded(x.size());
    kernels::round_to_nearest(x.data<float>().data(), x.size(), rounded.data());
    kernels::to_floats(rounded.data(), x.size(), out.mutable_data<float>().data());
    return out;
  }

  // Calls fn with the sizes that the kernels take.
  template <class Fn>
  void with_sizes(const Shape& x, const Shape& kernel, const Fn& fn) const {
    const kernels::WindowGrid grid = grid_of(x);
    if (settings_.depthwise) {
      fn(kernels::DepthwiseConvolution{
          .grid = grid, .batch = x[0], .channels = kernel[-2], .multiplier = kernel[-1]});
      return;
    }
    fn(kernels::Convolution{
        .grid = grid,
        .batch = x[0],
        .channels = channels(kernel),
        .filters = kernel[-1],
        .groups = settings_.groups,
        .bfloat16 = settings_.bfloat16,
        .precision = settings_.bfloat16 ? matmul_precision() : ops::internal::precision_of_step()});
  }

  const Settings settings_;

 private:
  kernels::WindowGrid grid_of(const Shape& x) const {
    kernels::WindowGrid out;
    const int first = 3 - spatial_axes();
    for (int i = 0; i < spatial_axes(); ++i) {
      const SpatialWindow& window = settings_.windows[i];
      out.axes[first + i] = {.input = x[i + 1],
                             .output = window.count(x[i + 1]),
                             .size = window.size,
                             .stride = window.stride,
                             .dilation = window.dilation,
                             .before = window.before};
    }
    return out;
  }
};

Tensor gradient_of_input(const ConvolutionBase::Settings& settings, const Tensor& dy,
                         const Tensor& kernel, const Shape& x);
Tensor gradient_of_kernel(const ConvolutionBase::Settings& settings, const Tensor& x,
                          const Tensor& dy, const Shape& kernel);

// The inputs are x, kernel and, optionally, bias.
class ConvolutionOp final : public ConvolutionBase {
 public:
  ConvolutionOp(Settings settings, bool relu)
      : ConvolutionBase("Convolution", std::move(settings)), relu_(relu) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating(caller(), in[0]);
    for (const TensorSpec& other : in.subspan(1)) {
      ops::internal::check_same_dtype(caller(), in[0], other);
    }
    check_kernel(in[1].shape);
    check_input("input", in[0].shape, channels(in[1].shape));
    if (in.size() == 3 && in[2].shape != Shape{filters(in[1].shape)}) {
      throw ValueError(caller(),
                       ": the bias must have one value for each filter of a kernel of shape ",
                       in[1].shape, ", received shape ", in[2].shape);
    }
    return {{.shape = output_shape(in[0].shape, in[1].shape), .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor input = operand(in[0]), of_kernel = operand(in[1]);
    const Shape &x = in[0].shape(), &kernel = in[1].shape();
    Tensor y = Tensor::uninitialized(output_shape(x, kernel), in[0].dtype());
    visit_floating(y.dtype(), caller(), [&]<class T>(const T&) {
      const T *from = input.data<T>().data(), *weights = of_kernel.data<T>().data();
      const T* bias = in.size() == 3 ? in[2].data<T>().data() : nullptr;
      T* to = y.mutable_data<T>().data();
      with_sizes(x, kernel, [&]<class Sizes>(const Sizes& sizes) {
        if constexpr (std::same_as<Sizes, kernels::Convolution>) {
          kernels::convolve(sizes, from, weights, bias, relu_, to);
        } else {
          kernels::convolve_depthwise(sizes, from, weights, to);
        }
      });
    });
    return {y};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const AutocastScope products(settings_.operands);
    Tensor dz = args.output_gradients[0].dense();
    if (relu_) {
      const Tensor zero = Tensor::zeros({}, dz.dtype());
      dz = ops::where(ops::greater(args.outputs[0], zero), dz, zero);
    }
    std::vector<Gradient> out(args.input_specs.size());
    if (args.wants(0)) {
      out[0] = gradient_of_input(settings_, dz, args.inputs[1], args.input_specs[0].shape);
    }
    if (args.wants(1)) {
      out[1] = gradient_of_kernel(settings_, args.inputs[0], dz, args.input_specs[1].shape);
    }
    if (out.size() == 3 && args.wants(2)) out[2] = ops::sum_to(dz, args.input_specs[2].shape);
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = relu_ ? 1U : 0U}; }

 private:
  const bool relu_;
};

// The inputs are dy and kernel, the output is dx.
class TransposedConvolution final : public ConvolutionBase {
 public:
  TransposedConvolution(Settings settings, std::vector<int64_t> sizes)
      : ConvolutionBase("TransposedConvolution", std::move(settings)), sizes_(std::move(sizes)) {
    if (sizes_.size() != settings_.windows.size()) {
      throw ValueError(caller(), ": requires a size for each of ", settings_.windows.size(),
                       " spatial axes, received ", sizes_.size());
    }
  }

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating(caller(), in[0]);
    ops::internal::check_same_dtype(caller(), in[0], in[1]);
    const Shape &dy = in[0].shape, &kernel = in[1].shape;
    check_kernel(kernel);
    check_input("input", dy, filters(kernel));
    const Shape x = input_shape(dy, kernel);
    if (!compatible(output_shape(x, kernel), dy)) {
      throw ValueError(caller(), ": an input of shape ", dy, " does not match a result of shape ",
                       x, "; pass the sizes that the convolution had");
    }
    return {{.shape = x, .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor input = operand(in[0]), of_kernel = operand(in[1]);
    const Shape& kernel = in[1].shape();
    Tensor dx = Tensor::uninitialized(input_shape(in[0].shape(), kernel), in[0].dtype());
    visit_floating(dx.dtype(), caller(), [&]<class T>(const T&) {
      const T *dy = input.data<T>().data(), *weights = of_kernel.data<T>().data();
      T* to = dx.mutable_data<T>().data();
      with_sizes(dx.shape(), kernel, [&]<class Sizes>(const Sizes& sizes) {
        if constexpr (std::same_as<Sizes, kernels::Convolution>) {
          kernels::convolve_transposed(sizes, dy, weights, to);
        } else {
          kernels::convolve_depthwise_transposed(sizes, dy, weights, to);
        }
      });
    });
    return {dx};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const AutocastScope products(settings_.operands);
    const Tensor g = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) out[0] = dispatch1(ConvolutionOp(settings_, false), {g, args.inputs[1]});
    if (args.wants(1)) {
      out[1] = gradient_of_kernel(settings_, g, args.inputs[0], args.input_specs[1].shape);
    }
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }

 private:
  Shape input_shape(const Shape& dy, const Shape& kernel) const {
    return Shape{dy[0]} + Shape(sizes_) + Shape{channels(kernel)};
  }

  const std::vector<int64_t> sizes_;
};

// The inputs are x and dy, the output is the gradient of the kernel.
class KernelGradient final : public ConvolutionBase {
 public:
  KernelGradient(Settings settings, const Shape& kernel)
      : ConvolutionBase("ConvolutionKernelGradient", std::move(settings)), kernel_(kernel) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = kernel_, .dtype = in[0].dtype}};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor input = operand(in[0]), of_result = operand(in[1]);
    Tensor out = Tensor::uninitialized(kernel_, in[0].dtype());
    visit_floating(out.dtype(), caller(), [&]<class T>(const T&) {
      const T *x = input.data<T>().data(), *dy = of_result.data<T>().data();
      T* to = out.mutable_data<T>().data();
      with_sizes(in[0].shape(), kernel_, [&]<class Sizes>(const Sizes& sizes) {
        if constexpr (std::same_as<Sizes, kernels::Convolution>) {
          kernels::convolution_kernel_gradient(sizes, x, dy, to);
        } else {
          kernels::depthwise_kernel_gradient(sizes, x, dy, to);
        }
      });
    });
    return {out};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const AutocastScope products(settings_.operands);
    const Tensor g = args.output_gradients[0].dense();
    std::vector<Gradient> out(2);
    if (args.wants(0)) {
      out[0] = gradient_of_input(settings_, args.inputs[1], g, args.input_specs[0].shape);
    }
    if (args.wants(1)) out[1] = dispatch1(ConvolutionOp(settings_, false), {args.inputs[0], g});
    return out;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }

 private:
  const Shape kernel_;
};

Tensor gradient_of_input(const ConvolutionBase::Settings& settings, const Tensor& dy,
                         const Tensor& kernel, const Shape& x) {
  const auto sizes = x.dims().subspan(1, settings.windows.size());
  return dispatch1(TransposedConvolution(settings, {sizes.begin(), sizes.end()}), {dy, kernel});
}

Tensor gradient_of_kernel(const ConvolutionBase::Settings& settings, const Tensor& x,
                          const Tensor& dy, const Shape& kernel) {
  return dispatch1(KernelGradient(settings, kernel), {x, dy});
}

}  // namespace

int64_t ops::SpatialWindow::count(int64_t input) const {
  if (input == kUnknown) return kUnknown;
  const int64_t padded = before + input + after;
  return padded < span() ? 0 : (padded - span()) / stride + 1;
}

Tensor ops::convolution(const Tensor& x, const Tensor& kernel, const Tensor& bias,
                        const SpatialWindows& windows, int64_t groups, bool relu) {
  std::vector<Tensor> inputs = {x, kernel};
  if (bias) inputs.push_back(bias);
  return dispatch1(
      ConvolutionOp({.caller = "convolution", .windows = windows, .groups = groups}, relu),
      std::move(inputs));
}

Tensor ops::transposed_convolution(const Tensor& y, const Tensor& kernel,
                                   const SpatialWindows& windows, const std::vector<int64_t>& sizes,
                                   int64_t groups) {
  return dispatch1(
      TransposedConvolution(
          {.caller = "transposed_convolution", .windows = windows, .groups = groups}, sizes),
      {y, kernel});
}

Tensor ops::depthwise_convolution(const Tensor& x, const Tensor& kernel,
                                  const SpatialWindows& windows) {
  return dispatch1(
      ConvolutionOp({.caller = "depthwise_convolution", .windows = windows, .depthwise = true},
                    false),
      {x, kernel});
}

}  // namespace keel
