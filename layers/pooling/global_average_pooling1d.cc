#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/data_format.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/registry.h>

namespace keel {

GlobalAveragePooling1DLayer::GlobalAveragePooling1DLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)),
      steps_axis_(is_channels_last(options_.data_format, "GlobalAveragePooling1D " + name()) ? 1
                                                                                             : 2) {}

Tensor GlobalAveragePooling1DLayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  const Tensor mask = input.mask();
  if (x.rank() != 3 || (mask && mask.rank() != 2)) {
    throw ValueError("GlobalAveragePooling1D ", name(),
                     ": input must have rank 3 and its mask rank 2, received shape ", x.shape(),
                     mask ? str(" and ", mask.shape()) : "");
  }
  if (!mask) return ops::mean(x, {steps_axis_}, options_.keepdims);
  const Tensor counts = ops::expand_dims(mask, steps_axis_ == 1 ? 2 : 1);
  const Tensor kept = ops::where(counts, x, Tensor::zeros({}, x.dtype()));
  const Tensor sum = ops::sum(kept, {steps_axis_}, options_.keepdims);
  return sum / ops::sum(ops::cast(counts, x.dtype()), {steps_axis_}, options_.keepdims);
}

KEEL_REGISTER(Layer, GlobalAveragePooling1DLayer, .package = "keras", .call = "inputs, mask")

}  // namespace keel
