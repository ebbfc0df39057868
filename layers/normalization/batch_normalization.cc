#include "layers/normalization/batch_normalization.h"

#include "autodiff/tape.h"
#include "layers/cast.h"

namespace keel {

BatchNormalizationLayer::BatchNormalizationLayer(Options options)
    : TensorLayer(kClassName, options), options_(std::move(options)) {
  if (options_.axis.values().size() != 1) {
    throw ValueError("BatchNormalization ", name(), ": needs one axis, received ",
                     options_.axis.values().size());
  }
  if (!(options_.momentum >= 0 && options_.momentum <= 1) || !(options_.epsilon >= 0)) {
    throw ValueError("BatchNormalization ", name(),
                     ": needs momentum in [0, 1] and epsilon >= 0, received ", options_.momentum,
                     " and ", options_.epsilon);
  }
}

void BatchNormalizationLayer::build_weights(const TensorSpec& input) {
  const int axis = options_.axis.normalized(input.shape, "BatchNormalization " + name())[0];
  const int64_t channels = input.shape[axis];
  if (channels == kUnknown) {
    throw ValueError("BatchNormalization ", name(), ": needs a known number of channels, received ",
                     input.shape);
  }
  const auto add = [&](const char* name, const Initializer& initializer) {
    return add_weight(
        {.name = name, .shape = {channels}, .initializer = initializer, .dtype = dtype()});
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
  if (options_.scale) gamma_ = add("gamma", options_.gamma_initializer);
  if (options_.center) beta_ = add("beta", options_.beta_initializer);
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
  if (context.training && trainable() && has_statistics) return from_batch(x, axis, broadcast);
  return from_averages(x, broadcast);
}

Tensor BatchNormalizationLayer::from_batch(const Tensor& x, int axis, const Shape& broadcast) {
  std::vector<int> others;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) others.push_back(i);
  }
  const Tensor mean = ops::mean(x, others, true);
  const Tensor centered = x - mean;
  const Tensor variance = ops::mean(ops::square(centered), others, true);
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

}  // namespace keel
