#include <keel/layers/recurrent/simple_rnn.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/recurrent/internal/cell_settings.h>
#include <keel/layers/registry.h>

namespace keel {

SimpleRNNCellLayer::SimpleRNNCellLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {}

RecurrentCell::Step SimpleRNNCellLayer::make_step(const Masks& masks) const {
  return [this, masks, kernels = recurrent_kernels(masks)](const Tensor& projected,
                                                           const States& states) -> States {
    return {options_.activation(projected + recur(states[0], kernels, masks))};
  };
}

SimpleRNNLayer::SimpleRNNLayer(Options options)
    : RecurrentLayer(kClassName, options,
                     make_cell<SimpleRNNCellLayer>("simple_rnn_cell", options)),
      options_(std::move(options)) {}

KEEL_REGISTER(Layer, SimpleRNNCellLayer, .package = "keras", .call = "inputs, states, training",
              .ignored_keys = "implementation=*")
KEEL_REGISTER(Layer, SimpleRNNLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "implementation=*, time_major=false")

}  // namespace keel
