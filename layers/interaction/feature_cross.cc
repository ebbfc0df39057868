#include "layers/interaction/feature_cross.h"

#include "layers/cast.h"
#include "layers/merging/merge.h"

namespace keel {

FeatureCrossLayer::FeatureCrossLayer(Options options)
    : Layer(kClassName, options), options_(std::move(options)) {
  if (!(options_.diag_scale >= 0)) {
    throw ValueError("FeatureCross ", name(), ": diag_scale must not be negative, received ",
                     options_.diag_scale);
  }
  if (options_.projection_dim && *options_.projection_dim <= 0) {
    throw ValueError("FeatureCross ", name(), ": projection_dim must be positive, received ",
                     *options_.projection_dim);
  }
}

void FeatureCrossLayer::build_weights(const Specs& inputs) {
  const std::vector<TensorSpec> specs = flatten(inputs);
  if (specs.empty() || specs.size() > 2 || specs[0].shape.rank() < 2 ||
      specs[0].shape[-1] == kUnknown) {
    throw ValueError("FeatureCross ", name(),
                     ": needs one or two tensors of rank 2 or more with a known last dimension, "
                     "received ",
                     specs.size(), specs.empty() ? Shape{} : specs[0].shape);
  }
  const int64_t dim = specs[0].shape[-1];
  const auto kernel = [&](const char* name, int64_t in, int64_t out) {
    return add_weight({.name = name,
                       .shape = {in, out},
                       .initializer = options_.kernel_initializer,
                       .regularizer = options_.kernel_regularizer,
                       .dtype = dtype()});
  };
  if (options_.projection_dim) down_kernel_ = kernel("down_kernel", dim, *options_.projection_dim);
  kernel_ = kernel("kernel", options_.projection_dim.value_or(dim), dim);
  if (options_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = {dim},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .dtype = dtype()});
  }
}

Tensors FeatureCrossLayer::call(const Tensors& inputs, const CallContext&) {
  const std::vector<Tensor> tensors = merge_inputs(*this, inputs, 1);
  const Tensor x0 = as_dtype(tensors.front(), dtype());
  const Tensor x = as_dtype(tensors.back(), dtype());
  if (tensors.size() > 2 || !compatible(x0.shape(), x.shape())) {
    throw ValueError("FeatureCross ", name(), ": needs x0 and x of one shape, received ",
                     tensors.size(), " tensors, ", x0.shape(), " and ", x.shape());
  }
  Tensor y = ops::matmul(options_.projection_dim ? ops::matmul(x, down_kernel_) : x, kernel_);
  if (options_.use_bias) y = y + bias_;
  y = options_.pre_activation(y);
  if (options_.diag_scale > 0) y = y + ops::scale(x, options_.diag_scale);
  return x0 * y + x;
}

}  // namespace keel
