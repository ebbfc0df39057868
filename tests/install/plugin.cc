// A plugin that contains Keel: builds a model and returns one of its predictions.
#include <keel/keel.h>

extern "C" float plugin_score(float value) {
  using namespace keel;
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Functional model({.inputs = {{"x", x}},
                          .outputs = layers::Dense({.units = 1, .kernel_initializer = "ones"})(x)});
  const Tensors row = {{"x", Tensor::from<float>({value, 1}, {1, 2})}};
  return model->predict(row, {.verbose = Verbose::kSilent}).tensor().item<float>();
}
