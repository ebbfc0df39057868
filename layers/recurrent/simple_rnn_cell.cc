#include <keel/layers/recurrent/simple_rnn_cell.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/registry.h>

namespace keel {

RecurrentCell::Step SimpleRNNCellLayer::make_step(const Masks& masks) const {
  return [this, masks, kernels = recurrent_kernels(masks)](const Tensor& projected,
                                                           const States& states) -> States {
    return {options_.activation(projected + recur(states[0], kernels, masks))};
  };
}

KEEL_REGISTER(Layer, SimpleRNNCellLayer)

}  // namespace keel
