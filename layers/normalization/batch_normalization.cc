#include <keel/layers/normalization/batch_normalization.h>

#include <algorithm>
#include <limits>

#include <keel/autodiff/tape.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/normalize_axes.h>
#include <keel/layers/internal/replica_sum.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns true if the statistics are those of the rows of several replicas.
bool exchanges(const BatchNormalizationOptions& options) {
  return options.synchronized && in_several_replicas();
}

}  // namespace

Config encode(const RenormClipping& v) {
  Config out = Config::dict();
  if (v.rmax) out.set("rmax", *v.rmax);
  if (v.rmin) out.set("rmin", *v.rmin);
  if (v.dmax) out.set("dmax", *v.dmax);
  return out;
}

void decode(const Config& c, RenormClipping& v) {
  v = {};
  for (const auto& [key, value] : c.entries()) {
    if (key == "rmax") {
      decode(value, v.rmax);
    } else if (key == "rmin") {
      decode(value, v.rmin);
    } else if (key == "dmax") {
      decode(value, v.dmax);
    } else {
      throw ValueError("renorm_clipping: the keys must be rmax, rmin and dmax, received '", key,
                       "'");
    }
  }
}

BatchNormalizationLayer::BatchNormalizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.axis.values().size() != 1) {
    throw ValueError("BatchNormalization ", name(), ": axis must be a single axis, received ",
                     options_.axis.values().size());
  }
  if (!(options_.momentum >= 0 && options_.momentum <= 1) || !(options_.epsilon >= 0)) {
    throw ValueError("BatchNormalization ", name(),
                     ": momentum must be in [0, 1] and epsilon must not be negative, received ",
                     options_.momentum, " and ", options_.epsilon);
  }
  if (!(options_.renorm_momentum >= 0 && options_.renorm_momentum <= 1)) {
    throw ValueError("BatchNormalization ", name(),
                     ": renorm_momentum must be in [0, 1], received ", options_.renorm_momentum);
  }
  const RenormClipping clipping = options_.renorm_clipping.value_or(RenormClipping{});
  if (clipping.rmin.value_or(0) > clipping.rmax.value_or(kInfinity) ||
      clipping.dmax.value_or(0) < 0) {
    throw ValueError("BatchNormalization ", name(),
                     ": renorm_clipping needs rmin <= rmax and dmax >= 0, received ",
                     to_json(encode(clipping)));
  }
}

void BatchNormalizationLayer::build_weights(const TensorSpec& input) {
  const int axis = options_.axis.normalized(input.shape, "BatchNormalization " + name())[0];
  const int64_t channels = input.shape[axis];
  if (channels == kUnknown) {
    throw ValueError("BatchNormalization ", name(),
                     ": the number of channels must be known, received shape ", input.shape);
  }
  const auto add = [&](const char* name, const Initializer& initializer,
                       const Regularizer& regularizer, const Constraint& constraint) {
    return add_weight({.name = name,
                       .shape = {channels},
                       .initializer = initializer,
                       .regularizer = regularizer,
                       .constraint = constraint,
                       .dtype = dtype()});
  };
  const auto add_average = [&](const char* name, const Initializer& initializer) {
    return add_weight({.name = name,
                       .shape = {channels},
                       .initializer = initializer,
                       .trainable = false,
                       .dtype = dtype(),
                       .synchronization = VariableSynchronization::kOnRead,
                       .aggregation = VariableAggregation::kMean});
  };
  if (options_.scale) {
    gamma_ = add("gamma", options_.gamma_initializer, options_.gamma_regularizer,
                 options_.gamma_constraint);
  }
  if (options_.center) {
    beta_ =
        add("beta", options_.beta_initializer, options_.beta_regularizer, options_.beta_constraint);
  }
  moving_mean_ = add_average("moving_mean", options_.moving_mean_initializer);
  moving_variance_ = add_average("moving_variance", options_.moving_variance_initializer);
  if (!options_.renorm) return;
  // Deviations start at the square roots of the variances, as in Keras.
  const auto add_deviation = [&](const char* name) {
    return add_weight(Variable(ops::sqrt(moving_variance_.read()),
                               {.name = name,
                                .trainable = false,
                                .synchronization = VariableSynchronization::kOnRead,
                                .aggregation = VariableAggregation::kMean}));
  };
  moving_stddev_ = add_deviation("moving_stddev");
  renorm_mean_ = add_average("renorm_mean", "zeros");
  renorm_stddev_ = add_deviation("renorm_stddev");
}

Tensor BatchNormalizationLayer::call(const Tensor& input, const CallContext& context) {
  const Tensor x = as_dtype(input, dtype());
  const int axis = options_.axis.normalized(x.shape(), "BatchNormalization " + name())[0];
  Shape broadcast;
  for (int i = 0; i < x.rank(); ++i) {
    broadcast = broadcast.inserted(i, i == axis ? moving_mean_.shape()[0] : 1);
  }
  // If replicas share their statistics, one without rows takes part in the sums.
  const bool has_statistics = x.is_symbolic() || x.size() > 0 || exchanges(options_);
  if (context.training && trainable() && has_statistics) {
    return from_batch(x, input.mask(), axis, broadcast);
  }
  return from_averages(x, broadcast);
}

BatchNormalizationLayer::Moments BatchNormalizationLayer::moments(
    const Tensor& x, const Tensor& mask, const std::vector<int>& axes) const {
  if (!mask && (x.is_symbolic() || !exchanges(options_))) {
    const Tensor mean = ops::mean(x, axes, true);
    const Tensor centered = x - mean;
    return {mean, centered, ops::mean(ops::square(centered), axes, true)};
  }
  if (!mask) {
    int64_t elements = 1;
    for (const int axis : axes) elements *= x.shape()[axis];
    const double all = replica_sum(Tensor::scalar(static_cast<double>(elements))).item<double>();
    const double factor = 1 / std::max(all, 1.0);
    const Tensor mean = replica_sum(ops::sum(x, axes, true)) * factor;
    const Tensor centered = x - mean;
    return {mean, centered, replica_sum(ops::sum(ops::square(centered), axes, true)) * factor};
  }
  if (mask.rank() != x.rank() - 1) {
    throw ValueError("BatchNormalization ", name(), ": the mask of an input of shape ", x.shape(),
                     " must have one dimension fewer, received shape ", mask.shape());
  }
  constexpr double kEpsilon = 1e-7;  // avoids a division by 0 if all steps are masked
  // A step counts once, regardless of the axis, as in Keras.
  const Tensor counts = ops::expand_dims(ops::cast(mask, x.dtype()), -1);
  const Tensor count = ops::shift(sum(counts, axes), kEpsilon);
  const Tensor mean = sum(x * counts, axes) / count;
  const Tensor centered = x - mean;
  return {mean, centered, sum(ops::square(centered) * counts, axes) / count};
}

Tensor BatchNormalizationLayer::sum(const Tensor& x, const std::vector<int>& axes) const {
  const Tensor own = ops::sum(x, axes, true);
  return options_.synchronized && !x.is_symbolic() ? replica_sum(own) : own;
}

Tensor BatchNormalizationLayer::renormalized(const Tensor& z, const Tensor& mean,
                                             const Tensor& deviation) const {
  const RenormClipping clipping = options_.renorm_clipping.value_or(RenormClipping{});
  const double dmax = clipping.dmax.value_or(kInfinity);
  const Tensor scale = ops::reshape(renorm_stddev_.read(), mean.shape());
  const Tensor r = ops::clip_by_value(deviation / scale, clipping.rmin.value_or(0),
                                      clipping.rmax.value_or(kInfinity));
  const Tensor shift = mean - ops::reshape(renorm_mean_.read(), mean.shape());
  const Tensor d = ops::clip_by_value(shift / scale, -dmax, dmax);
  return z * ops::stop_gradient(r) + ops::stop_gradient(d);
}

Tensor BatchNormalizationLayer::from_batch(const Tensor& x, const Tensor& mask, int axis,
                                           const Shape& broadcast) {
  if (!x.is_symbolic() && !mask && !options_.renorm && !exchanges(options_)) {
    return with_axes_last(x, {axis}, [&](const Tensor& last) {
      const int64_t rows = last.shape().drop_last().size();
      const auto [y, mean, variance] = ops::normalize(
          ops::reshape(last, {1, rows, last.dim(-1), 1}), gamma_ ? gamma_.read() : Tensor(),
          beta_ ? beta_.read() : Tensor(), {.epsilon = options_.epsilon});
      update_averages(mean, variance);
      return ops::reshape(y, last.shape());
    });
  }
  std::vector<int> others;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) others.push_back(i);
  }
  const auto [mean, centered, variance] = moments(x, mask, others);
  Tensor factor = ops::rsqrt(variance + options_.epsilon);
  Tensor y;
  if (options_.renorm) {
    const Tensor deviation = ops::sqrt(variance + options_.epsilon);
    y = renormalized(centered * factor, mean, deviation);
    if (options_.scale) y = y * ops::reshape(gamma_, broadcast);
  } else {
    if (options_.scale) factor = factor * ops::reshape(gamma_, broadcast);
    y = centered * factor;
  }
  // Renormalization reads the averages of the previous batches.
  if (!x.is_symbolic()) update_averages(mean, variance);
  return options_.center ? y + ops::reshape(beta_, broadcast) : y;
}

void BatchNormalizationLayer::update_averages(const Tensor& mean, const Tensor& variance) const {
  const NoGradient pause;
  average(moving_mean_, mean, options_.momentum);
  if (!options_.renorm) return average(moving_variance_, variance, options_.momentum);
  const Tensor deviation = ops::sqrt(variance + options_.epsilon);
  average(moving_stddev_, deviation, options_.momentum);
  moving_variance_.assign(ops::relu(ops::square(moving_stddev_.read()) - options_.epsilon));
  average(renorm_mean_, mean, options_.renorm_momentum);
  average(renorm_stddev_, deviation, options_.renorm_momentum);
}

Tensor BatchNormalizationLayer::from_averages(const Tensor& x, const Shape& broadcast) const {
  Tensor factor = ops::rsqrt(moving_variance_.read() + options_.epsilon);
  if (options_.scale) factor = factor * gamma_;
  const Tensor y = (x - ops::reshape(moving_mean_, broadcast)) * ops::reshape(factor, broadcast);
  return options_.center ? y + ops::reshape(beta_, broadcast) : y;
}

void BatchNormalizationLayer::average(const Variable& moving, const Tensor& batch,
                                      double momentum) const {
  moving.assign(moving.read() * momentum + batch.reshaped(moving.shape()) * (1 - momentum));
}

std::optional<PlanValues> BatchNormalizationLayer::plan(Planner& planner,
                                                        const PlanValues& inputs) const {
  const auto x = planner.rows(inputs, true);
  if (!x || dtype() != DType::kFloat32) return {};
  const Shape shape = planner.spec((*x)[0]).shape;
  const int axis = options_.axis.normalized(shape, "BatchNormalization " + name())[0];
  if (axis != shape.rank() - 1) return {};
  const NoGradient pause;
  Tensor factor = ops::rsqrt(moving_variance_.read() + options_.epsilon);
  if (options_.scale) factor = factor * gamma_;
  const Tensor offset = options_.center ? beta_.read() : ops::zeros_like(factor);
  const std::optional<PlanValue> y =
      planner.affine((*x)[0], {.center = moving_mean_.read(), .factor = factor, .offset = offset});
  if (!y) return {};
  return *y;
}

KEEL_REGISTER(Layer, BatchNormalizationLayer, .package = "keras", .call = "inputs, training, mask",
              .ignored_keys = "virtual_batch_size=null, adjustment=null, fused=*")

}  // namespace keel
