#include <keel/layers/axes.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/normalize_axes.h>
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
  // For small groups, down to two elements, results show rounding errors of the formula of the
  // variance, so it must be Keras's.
  const ops::NormalizeOptions options = {.epsilon = options_.epsilon,
                                         .moments = ops::Moments::kDifference};
  const Tensor gamma = gamma_ ? gamma_.read() : Tensor(), beta = beta_ ? beta_.read() : Tensor();
  return with_axes_last(x, {axis}, [&](const Tensor& last) {
    const int64_t steps = last.shape().drop_last().without(0).size();
    const Tensor groups = ops::reshape(last, {last.dim(0), steps, groups_, last.dim(-1) / groups_});
    return ops::reshape(ops::normalize(groups, gamma, beta, options).y, last.shape());
  });
}

KEEL_REGISTER(Layer, GroupNormalizationLayer, .package = "keras")

}  // namespace keel
