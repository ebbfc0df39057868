#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

TensorLike make_input(const InputOptions& options, bool ragged, bool sparse) {
  const Shape shape = ragged ? Shape{kUnknown} : options.shape;
  const auto layer = std::make_shared<InputLayer>(
      InputLayerOptions{.batch_shape = Shape{options.batch_size} + shape,
                        .dtype = options.dtype,
                        .ragged = ragged,
                        .sparse = sparse,
                        .name = options.name});
  return layer->make_output();
}

}  // namespace

InputLayer::InputLayer(Options options) : Layer(kClassName, options), options_(std::move(options)) {
  if (options_.ragged && options_.sparse) {
    throw ValueError("InputLayer ", name(),
                     ": an input cannot be both ragged and sparse; set one of them");
  }
  if (options_.batch_shape.rank() == 0) {
    throw ValueError("InputLayer ", name(),
                     ": batch_shape is empty; it must include the batch dimension");
  }
}

TensorSpec InputLayer::spec() const {
  const Layout layout = options_.ragged   ? Layout::kRagged
                        : options_.sparse ? Layout::kSparse
                                          : Layout::kDense;
  return {.shape = options_.batch_shape, .dtype = options_.dtype, .layout = layout};
}

TensorLike InputLayer::make_output() {
  return make_outputs(shared_from_this(), Tensors(), Specs(spec())).leaf();
}

namespace layers {

Tensor input(const InputOptions& options) { return make_input(options, false, false).tensor(); }
RaggedTensor ragged_input(const InputOptions& options) {
  return make_input(options, true, false).ragged();
}
SparseTensor sparse_input(const InputOptions& options) {
  return make_input(options, false, true).sparse();
}

}  // namespace layers

KEEL_REGISTER(
    Layer, InputLayer, .package = "keras",
    .ignored_keys = "optional=false, trainable=*, input_tensor=null, shape=null, batch_size=null")

}  // namespace keel
