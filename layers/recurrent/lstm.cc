#include <keel/layers/recurrent/lstm.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/recurrent/internal/cell_settings.h>
#include <keel/layers/registry.h>

namespace keel {

LSTMCellLayer::LSTMCellLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}

void LSTMCellLayer::build_weights(const Specs& inputs) {
  RecurrentCell::build_weights(inputs);
  if (!options_.use_bias || !options_.unit_forget_bias) return;
  bias().update([&](Tensor& value) {
    visit_floating(value.dtype(), "LSTMCell", [&]<class T>(const T&) {
      const auto forget = value.mutable_data<T>().subspan(units(), units());
      std::ranges::fill(forget, T{1});
    });
  });
}

RecurrentCell::Step LSTMCellLayer::make_step(const Masks& masks) const {
  return [this, masks, kernels = recurrent_kernels(masks)](const Tensor& projected,
                                                           const States& states) -> States {
    const Tensor sum = projected + recur(states[0], kernels, masks);
    const std::vector<Tensor> gates = ops::split(sum, 4);
    const Tensor in = options_.recurrent_activation(gates[0]);
    const Tensor forget = options_.recurrent_activation(gates[1]);
    const Tensor out = options_.recurrent_activation(gates[3]);
    const Tensor carry = forget * states[1] + in * options_.activation(gates[2]);
    return {out * options_.activation(carry), carry};
  };
}

LSTMLayer::LSTMLayer(Options options)
    : RecurrentLayer(kClassName, options, make_cell<LSTMCellLayer>("lstm_cell", options)),
      options_(std::move(options)) {}

KEEL_REGISTER(Layer, LSTMCellLayer, .package = "keras", .call = "inputs, states, training",
              .ignored_keys = "implementation=*")
KEEL_REGISTER(Layer, LSTMLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "implementation=*, time_major=false, use_cudnn=*")

}  // namespace keel
