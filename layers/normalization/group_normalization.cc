#include <limits>

#include <keel/layers/axes.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/registry.h>

namespace keel {

GroupNormalizationLayer::GroupNormalizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (!(options_.epsilon >= 0) || (options_.groups < 1 && options_.groups != -1)) {
    throw ValueError("GroupNormalization ", name(),
                     ": epsilon must not be negative and groups must be positive or -1, received ",
                     options_.epsilon, " and ", options_.groups);
  }
}

int GroupNormalizationLayer::axis_of(const Shape& shape) const {
  const int axis = Axes(options_.axis).normalized(shape, "GroupNormalization " + name())[0];
  if (axis == 0) {
    throw ValueError("GroupNormalization ", name(),
                     ": axis must not be the batch axis, received shape ", shape);
  }
  return axis;
}

void GroupNormalizationLayer::build_weights(const TensorSpec& input) {
  const int64_t channels = input.shape[axis_of(input.shape)];
  groups_ = options_.groups == -1 ? channels : options_.groups;
  if (channels <= 0 || channels % groups_ != 0) {
    throw ValueError("GroupNormalization ", name(),
                     ": the number of channels must be a multiple of ", groups_,
                     ", received an input of shape ", input.shape);
  }
  if (options_.scale) {
    gamma_ = add_weight({.name = "gamma",
                         .shape = {channels},
                         .initializer = options_.gamma_initializer,
                         .regularizer = options_.gamma_regularizer,
                         .constraint = options_.gamma_constraint,
                         .dtype = dtype()});
  }
  if (options_.center) {
    beta_ = add_weight({.name = "beta",
                        .shape = {channels},
                        .initializer = options_.beta_initializer,
                        .regularizer = options_.beta_regularizer,
                        .constraint = options_.beta_constraint,
                        .dtype = dtype()});
  }
}

Tensor GroupNormalizationLayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  const int axis = axis_of(x.shape());
  if (x.is_symbolic()) return Tensor::symbolic(x.spec());
  // Splits the channels into two axes: groups, and channels of a group.
  const int64_t channels = x.dim(axis) / groups_;
  const Tensor grouped = ops::reshape(x, x.shape().with(axis, channels).inserted(axis, groups_));
  std::vector<int> reduced;
  for (int i = 1; i < grouped.rank(); ++i) {
    if (i != axis) reduced.push_back(i);
  }
  const Tensor mean = ops::mean(grouped, reduced, true);
  // For small groups, down to two elements, results show rounding errors of this formula, so it
  // must be Keras's.
  const Tensor difference = ops::mean(ops::square(grouped), reduced, true) - ops::square(mean);
  const Tensor variance =
      ops::clip_by_value(difference, 0, std::numeric_limits<double>::infinity());
  const Tensor factor = ops::rsqrt(variance + options_.epsilon);
  Tensor y = ops::reshape((grouped - mean) * factor, x.shape());
  Shape broadcast;
  for (int i = 0; i < x.rank(); ++i) broadcast = broadcast.inserted(i, i == axis ? x.dim(i) : 1);
  if (options_.scale) y = y * ops::reshape(gamma_, broadcast);
  if (options_.center) y = y + ops::reshape(beta_, broadcast);
  return y;
}

KEEL_REGISTER(Layer, GroupNormalizationLayer, .package = "keras")

}  // namespace keel
