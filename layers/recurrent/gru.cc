#include <keel/layers/recurrent/gru.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/recurrent/internal/cell_settings.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Computes z h + (1 - z) g with one multiplication.
Tensor mix(const Tensor& z, const Tensor& h, const Tensor& g) { return g + z * (h - g); }

}  // namespace

GRUCellLayer::GRUCellLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}

Shape GRUCellLayer::bias_shape() const {
  return options_.reset_after ? Shape{2, 3 * units()} : Shape{3 * units()};
}

Tensor GRUCellLayer::input_bias() const {
  if (!options_.use_bias || !options_.reset_after) return RecurrentCell::input_bias();
  return ops::squeeze(ops::slice(bias(), 0, 0, 1), 0);
}

RecurrentCell::Step GRUCellLayer::make_step(const Masks& masks) const {
  if (!options_.reset_after) return make_step_before(masks);
  const Tensor bias_of_state =
      options_.use_bias ? ops::squeeze(ops::slice(bias(), 0, 1, 1), 0) : Tensor();
  return [this, masks, bias_of_state, kernels = recurrent_kernels(masks)](
             const Tensor& projected, const States& states) -> States {
    Tensor inner = recur(states[0], kernels, masks);
    if (bias_of_state) inner = inner + bias_of_state;
    const std::vector<Tensor> x = ops::split(projected, 3), h = ops::split(inner, 3);
    const Tensor update = options_.recurrent_activation(x[0] + h[0]);
    const Tensor reset = options_.recurrent_activation(x[1] + h[1]);
    return {mix(update, states[0], options_.activation(x[2] + reset * h[2]))};
  };
}

RecurrentCell::Step GRUCellLayer::make_step_before(const Masks& masks) const {
  const std::vector<Tensor> kernels = ops::split(recurrent_kernel(), 3);
  return [this, masks, kernels, of_gates = ops::concat({kernels[0], kernels[1]})](
             const Tensor& projected, const States& states) -> States {
    const Tensor& state = states[0];
    const auto masked = [&](size_t gate) {
      if (masks.states.empty()) return state;
      return state * masks.states[masks.states.size() == 1 ? 0 : gate];
    };
    const std::vector<Tensor> x = ops::split(projected, 3);
    const std::vector<Tensor> h =
        masks.states.empty()
            ? ops::split(ops::matmul(state, of_gates), 2)
            : std::vector{ops::matmul(masked(0), kernels[0]), ops::matmul(masked(1), kernels[1])};
    const Tensor update = options_.recurrent_activation(x[0] + h[0]);
    const Tensor reset = options_.recurrent_activation(x[1] + h[1]);
    const Tensor candidate = x[2] + ops::matmul(reset * masked(2), kernels[2]);
    return {mix(update, state, options_.activation(candidate))};
  };
}

GRULayer::GRULayer(Options options)
    : RecurrentLayer(kClassName, options, make_cell<GRUCellLayer>("gru_cell", options)),
      options_(std::move(options)) {}

KEEL_REGISTER(Layer, GRUCellLayer, .package = "keras", .call = "inputs, states, training",
              .ignored_keys = "implementation=*")
KEEL_REGISTER(Layer, GRULayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "implementation=*, time_major=false, use_cudnn=*")

}  // namespace keel
