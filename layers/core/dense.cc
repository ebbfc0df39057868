#include <keel/layers/core/dense.h>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

DenseLayer::DenseLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  if (options_.units <= 0) {
    throw ValueError("Dense ", name(), ": units must be positive, received ", options_.units);
  }
  set_activity_regularizer(options_.activity_regularizer);
}

void DenseLayer::build_weights(const TensorSpec& input) {
  if (input.shape.rank() < 2 || input.shape[-1] == kUnknown) {
    throw ValueError("Dense ", name(),
                     ": the input must have rank 2 or more and a known last dimension, received ",
                     input.shape);
  }
  kernel_ = add_weight({.name = "kernel",
                        .shape = {input.shape[-1], options_.units},
                        .initializer = options_.kernel_initializer,
                        .regularizer = options_.kernel_regularizer,
                        .constraint = options_.kernel_constraint,
                        .dtype = dtype()});
  if (options_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = {options_.units},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint,
                        .dtype = dtype()});
  }
}

Tensor DenseLayer::call(const Tensor& x, const CallContext&) {
  const Activation& activation = options_.activation;
  const bool relu = activation.is("relu");
  const Tensor bias = options_.use_bias ? bias_.read() : Tensor();
  // ops::dense computes relu itself; other functions are applied to its result.
  const Tensor y = ops::dense(as_dtype(x, dtype()), kernel_, bias, relu);
  return relu ? y : activation(y);
}

std::optional<PlanValues> DenseLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const std::optional<RowFunction> function = RowFunction::of(options_.activation);
  if (!function || dtype_policy() != DType::kFloat32) return {};
  const auto x = planner.rows(inputs, true);
  if (!x) return {};
  return planner.product((*x)[0], kernel_, bias_, *function);
}

KEEL_REGISTER(Layer, DenseLayer, .package = "keras",
              .ignored_keys = "lora_rank=null, lora_alpha=null, quantization_config=null")

}  // namespace keel
