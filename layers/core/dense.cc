#include <keel/layers/core/dense.h>

#include <keel/layers/core/internal/quantized_projection.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

DenseLayer::DenseLayer(Options options)
    : ProjectionLayer(kClassName, options), options_(std::move(options)) {
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
  build_projection(input.shape.rank(), {input.shape[-1], options_.units},
                   options_.use_bias ? std::optional(Shape{options_.units}) : std::nullopt);
}

Config DenseLayer::get_config() const {
  Config out = to_config(options_);
  add_projection_keys(out);
  return out;
}

ProjectionTerms DenseLayer::projection_terms(int input_rank) const {
  std::string rows;
  for (int i = 1; i < input_rank; ++i) rows += static_cast<char>('a' + i);
  return {.input = rows + "y", .kernel = "yz", .output = rows + "z"};
}

Tensor DenseLayer::call(const Tensor& x, const CallContext&) {
  const Activation& activation = options_.activation;
  const bool relu = activation.is("relu");
  const Tensor bias = options_.use_bias ? this->bias().read() : Tensor();
  if (is_quantized()) {
    const Tensor z = quantized_product(as_dtype(x, dtype()));
    return activation(bias ? z + bias : z);
  }
  // ops::dense computes relu itself; other functions are applied to its result.
  const Tensor y = ops::dense(as_dtype(x, dtype()), effective_kernel(), bias, relu);
  return relu ? y : activation(y);
}

std::optional<PlanValues> DenseLayer::plan(Planner& planner, const PlanValues& inputs) const {
  const std::optional<RowFunction> function = RowFunction::of(options_.activation);
  if (!function || dtype_policy() != DType::kFloat32 || has_lora()) return {};
  const auto x = planner.rows(inputs, true);
  if (!x) return {};
  return planner.product((*x)[0], kernel(), bias(), *function);
}

KEEL_REGISTER(Layer, DenseLayer, .package = "keras")

}  // namespace keel
