// A differentiable function whose gradient the caller supplies (tf.custom_gradient).
#pragma once

#include <functional>
#include <vector>

#include <keel/autodiff/operation.h>

namespace keel {

// Returns one gradient per input, of the input's shape (ValueError) and dtype (TypeError), or none;
// called once per gradient() that needs it. output_gradients[i] is none where nothing flowed back
// to output i. Must own what it captures: a tape may outlive the code that recorded it.
using Backward = std::function<std::vector<Gradient>(std::span<const Gradient> output_gradients)>;

struct WithBackward {
  std::vector<Tensor> outputs;
  Backward backward;
};

// Runs `forward` unrecorded, then records one op from `inputs` to its outputs whose gradient is
// `backward`. Eager only: RuntimeError for symbolic inputs.
std::vector<Tensor> custom_gradient(const std::vector<Tensor>& inputs,
                                    const std::function<WithBackward()>& forward);

}  // namespace keel
