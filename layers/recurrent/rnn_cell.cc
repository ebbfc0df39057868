#include <keel/layers/recurrent/rnn_cell.h>

#include <keel/layers/internal/cast.h>

namespace keel {

RNNCell::States RNNCell::initial_states(const Shape& input) const {
  States out;
  for (const Shape& shape : state_shapes(input)) out.push_back(Tensor::zeros(shape, dtype()));
  return out;
}

RNNCell::Run RNNCell::start(const Shape&, bool training) {
  return {.step = [this, training](const Tensor& x, const States& states) -> StepResult {
    Tensors::Items items = {x};
    items.insert(items.end(), states.begin(), states.end());
    const Tensors result = (*this)(Tensors::list(std::move(items)), {.training = training});
    StepResult out;
    for (const TensorLike& part : flatten(result)) {
      if (out.output) {
        out.states.push_back(part.tensor());
      } else {
        out.output = part.tensor();
      }
    }
    if (out.states.size() == states.size()) return out;
    throw ValueError(class_name(), " ", name(), ": call() must return an output and ",
                     states.size(), " states, received ", result.structure());
  }};
}

Tensors RNNCell::step_result(const StepResult& result) {
  Tensors::Items next(result.states.begin(), result.states.end());
  return Tensors::tuple({result.output, Tensors::list(std::move(next))});
}

RNNCell::StepInputs RNNCell::step_inputs(const Tensors& inputs, size_t states) const {
  StepInputs out;
  const std::vector<TensorLike> parts = flatten(inputs);
  if (inputs.is_leaf() || parts.size() != states + 1) {
    throw ValueError(class_name(), " ", name(), ": inputs must be a list of an input and ", states,
                     " states, received ", inputs.structure());
  }
  out.x = as_dtype(parts[0].tensor(), dtype());
  for (size_t i = 1; i < parts.size(); ++i) {
    out.states.push_back(as_dtype(parts[i].tensor(), dtype()));
  }
  return out;
}

}  // namespace keel
