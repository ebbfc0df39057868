#include <keel/framework/kernels/normalization/normalization.h>

#include <limits>

#include <keel/autodiff/normalization_ops.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/autodiff/tape.h>

namespace keel {
namespace {

using ops::Moments;
using ops::NormalizeOptions;

kernels::Normalization sizes_of(const Tensor& x, const NormalizeOptions& options) {
  kernels::Normalization out = {.samples = x.dim(0),
                                .steps = x.dim(1),
                                .groups = x.dim(2),
                                .width = x.dim(3),
                                .epsilon = options.epsilon,
                                .subtract_mean = options.subtract_mean};
  switch (options.moments) {
    case Moments::kCentered:
      out.moments = kernels::Moments::kCentered;
      break;
    case Moments::kDifference:
      out.moments = kernels::Moments::kDifference;
      break;
    case Moments::kMeanSquare:
      out.moments = kernels::Moments::kMeanSquare;
      break;
  }
  return out;
}

// Takes x, mean, variance, dy and, if there is one, gamma. Returns the requested gradients of x,
// gamma and beta.
class NormalizeGradient final : public Op {
 public:
  struct Wanted {
    bool x, gamma, beta;
  };
  NormalizeGradient(const NormalizeOptions& options, Wanted wanted)
      : Op("NormalizeGradient"), options_(options), wanted_(wanted) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const TensorSpec channels = {.shape = {in[0].shape[2] * in[0].shape[3]}, .dtype = in[0].dtype};
    std::vector<TensorSpec> out;
    if (wanted_.x) out.push_back(in[0]);
    if (wanted_.gamma) out.push_back(channels);
    if (wanted_.beta) out.push_back(channels);
    return out;
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    std::vector<Tensor> out;
    visit_floating(in[0].dtype(), "normalize", [&]<class T>(const T&) {
      const auto result = [&](bool wanted, const Shape& shape) -> T* {
        if (!wanted) return nullptr;
        out.push_back(Tensor::uninitialized(shape, in[0].dtype()));
        return out.back().mutable_data<T>().data();
      };
      const Shape channels = {in[0].dim(2) * in[0].dim(3)};
      T* const dx = result(wanted_.x, in[0].shape());
      T* const dgamma = result(wanted_.gamma, channels);
      T* const dbeta = result(wanted_.beta, channels);
      kernels::normalize_gradient<T>(sizes_of(in[0], options_),
                                     {.x = in[0].data<T>().data(),
                                      .gamma = in.size() == 5 ? in[4].data<T>().data() : nullptr,
                                      .mean = in[1].data<T>().data(),
                                      .variance = in[2].data<T>().data(),
                                      .dy = in[3].data<T>().data(),
                                      .dx = dx,
                                      .dgamma = dgamma,
                                      .dbeta = dbeta});
    });
    return out;
  }

 private:
  const NormalizeOptions options_;
  const Wanted wanted_;
};

// The inputs are x and, as far as they exist, gamma and beta.
class Normalize final : public Op {
 public:
  Normalize(const NormalizeOptions& options, bool has_gamma, bool has_beta)
      : Op("Normalize"), options_(options), has_gamma_(has_gamma), has_beta_(has_beta) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    const Shape& x = in[0].shape;
    ops::internal::check_floating("normalize", in[0]);
    if (x.rank() != 4) {
      throw ValueError("normalize: x must be [samples, steps, groups, width], received shape ", x);
    }
    const bool known = x[2] != kUnknown && x[3] != kUnknown;
    for (const TensorSpec& weight : in.subspan(1)) {
      ops::internal::check_same_dtype("normalize", in[0], weight);
      if (!compatible(weight.shape, {known ? x[2] * x[3] : kUnknown})) {
        throw ValueError("normalize: gamma and beta must have an element for each of the groups ",
                         "and of their width, received shape ", weight.shape, " for x of shape ",
                         x);
      }
    }
    const TensorSpec statistics = {.shape = {x[0], x[2]}, .dtype = in[0].dtype};
    return {in[0], statistics, statistics};
  }

  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Tensor& x = in[0];
    Tensor y = Tensor::uninitialized(x.shape(), x.dtype());
    Tensor mean = Tensor::uninitialized({x.dim(0), x.dim(2)}, x.dtype());
    Tensor variance = Tensor::uninitialized(mean.shape(), x.dtype());
    visit_floating(x.dtype(), "normalize", [&]<class T>(const T&) {
      kernels::normalize<T>(
          sizes_of(x, options_), x.data<T>().data(), has_gamma_ ? in[1].data<T>().data() : nullptr,
          has_beta_ ? in.back().data<T>().data() : nullptr, y.mutable_data<T>().data(),
          mean.mutable_data<T>().data(), variance.mutable_data<T>().data());
    });
    return {y, mean, variance};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    std::vector<Gradient> out(args.inputs.size());
    if (!args.output_gradients[0]) return out;
    const Tensor dy = args.output_gradients[0].dense();
    if (GradientTape::any_active()) {
      // Another tape differentiates the gradient, for which separate ops have gradients.
      const std::vector<Tensor> in(args.inputs.begin(), args.inputs.end());
      GradientTape tape;
      for (const Tensor& x : in) tape.watch(x);
      return tape.input_gradient(composed(in), in, {.output_gradient = dy});
    }
    const size_t gamma = 1, beta = has_gamma_ ? 2 : 1;
    const NormalizeGradient::Wanted wanted = {.x = args.wants(0),
                                              .gamma = has_gamma_ && args.wants(gamma),
                                              .beta = has_beta_ && args.wants(beta)};
    std::vector<Tensor> all = {args.inputs[0], args.outputs[1], args.outputs[2], dy};
    if (has_gamma_) all.push_back(args.inputs[gamma]);
    const std::vector<Tensor> given =
        dispatch(std::make_shared<const NormalizeGradient>(options_, wanted), std::move(all));
    size_t next = 0;
    if (wanted.x) out[0] = given[next++];
    if (wanted.gamma) out[gamma] = given[next++];
    if (wanted.beta) out[beta] = given[next];
    return out;
  }
  Retain retain() const override { return {.outputs = 6}; }

 private:
  // Returns max(x, 0) with the gradient of x, as NormalizeGradient has it.
  static Tensor max_with_0(const Tensor& x) {
    const Tensor added = ops::clip_by_value(-x, 0, std::numeric_limits<double>::infinity());
    return x + ops::stop_gradient(added);
  }
  // Computes y with separate ops.
  Tensor composed(const std::vector<Tensor>& in) const {
    const Tensor& x = in[0];
    const std::vector<int> axes = {1, 3};
    Tensor centered = x, variance;
    if (options_.moments == Moments::kMeanSquare) {
      variance = ops::mean(ops::square(x), axes, true);
    } else {
      const Tensor mean = ops::mean(x, axes, true);
      centered = x - mean;
      variance = options_.moments == Moments::kCentered
                     ? ops::mean(ops::square(centered), axes, true)
                     : max_with_0(ops::mean(ops::square(x), axes, true) - ops::square(mean));
    }
    const Shape weight = {x.dim(2), x.dim(3)};
    Tensor y = (options_.subtract_mean ? centered : x) * ops::rsqrt(variance + options_.epsilon);
    if (has_gamma_) y = y * ops::reshape(in[1], weight);
    if (has_beta_) y = y + ops::reshape(in.back(), weight);
    return y;
  }

  const NormalizeOptions options_;
  const bool has_gamma_, has_beta_;
};

}  // namespace

ops::Normalized ops::normalize(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                               const NormalizeOptions& options) {
  std::vector<Tensor> in = {x};
  if (gamma) in.push_back(gamma);
  if (beta) in.push_back(beta);
  const std::vector<Tensor> out = dispatch(
      std::make_shared<const Normalize>(options, static_cast<bool>(gamma), static_cast<bool>(beta)),
      std::move(in));
  return {out[0], out[1], out[2]};
}

}  // namespace keel
