#include <keel/layers/normalization/batch_normalization.h>

#include <keel/autodiff/tape.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

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
}

Tensor BatchNormalizationLayer::call(const Tensor& input, const CallContext& context) {
  const Tensor x = as_dtype(input, dtype());
  const int axis = options_.axis.normalized(x.shape(), "BatchNormalization " + name())[0];
  Shape broadcast;
  for (int i = 0; i < x.rank(); ++i) {
    broadcast = broadcast.inserted(i, i == axis ? moving_mean_.shape()[0] : 1);
  }
  const bool has_statistics = x.is_symbolic() || x.size() > 0;
  if (context.training && trainable() && has_statistics) {
    return from_batch(x, input.mask(), axis, broadcast);
  }
  return from_averages(x, broadcast);
}

BatchNormalizationLayer::Moments BatchNormalizationLayer::moments(
    const Tensor& x, const Tensor& mask, const std::vector<int>& axes) const {
  if (!mask) {
    const Tensor mean = ops::mean(x, axes, true);
    const Tensor centered = x - mean;
    return {mean, centered, ops::mean(ops::square(centered), axes, true)};
  }
  if (mask.rank() != x.rank() - 1) {
    throw ValueError("BatchNormalization ", name(), ": the mask of an input of shape ", x.shape(),
                     " must have one dimension fewer, received shape ", mask.shape());
  }
  constexpr double kEpsilon = 1e-7;  // avoids a division by 0 if all steps are masked
  // A step counts once, regardless of the axis, as in Keras.
  const Tensor counts = ops::expand_dims(ops::cast(mask, x.dtype()), -1);
  const Tensor count = ops::shift(ops::sum(counts, axes, true), kEpsilon);
  const Tensor mean = ops::sum(x * counts, axes, true) / count;
  const Tensor centered = x - mean;
  return {mean, centered, ops::sum(ops::square(centered) * counts, axes, true) / count};
}

Tensor BatchNormalizationLayer::from_batch(const Tensor& x, const Tensor& mask, int axis,
                                           const Shape& broadcast) {
  std::vector<int> others;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) others.push_back(i);
  }
  const auto [mean, centered, variance] = moments(x, mask, others);
  if (!x.is_symbolic()) {
    average(moving_mean_, mean);
    average(moving_variance_, variance);
  }
  Tensor factor = ops::rsqrt(variance + options_.epsilon);
  if (options_.scale) factor = factor * ops::reshape(gamma_, broadcast);
  const Tensor y = centered * factor;
  return options_.center ? y + ops::reshape(beta_, broadcast) : y;
}

Tensor BatchNormalizationLayer::from_averages(const Tensor& x, const Shape& broadcast) const {
  Tensor factor = ops::rsqrt(moving_variance_.read() + options_.epsilon);
  if (options_.scale) factor = factor * gamma_;
  const Tensor y = (x - ops::reshape(moving_mean_, broadcast)) * ops::reshape(factor, broadcast);
  return options_.center ? y + ops::reshape(beta_, broadcast) : y;
}

void BatchNormalizationLayer::average(const Variable& moving, const Tensor& batch) const {
  const NoGradient pause;
  const double keep = options_.momentum;
  moving.assign(moving.read() * keep + batch.reshaped(moving.shape()) * (1 - keep));
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
              .ignored_keys =
                  "synchronized=false, renorm=false, renorm_clipping=null, renorm_momentum=*, "
                  "virtual_batch_size=null, adjustment=null, fused=*")

}  // namespace keel
