// custom_gradient() defines a differentiable function whose gradient the caller supplies
// (tf.custom_gradient).
#pragma once

#include <functional>
#include <vector>

#include <keel/autodiff/operation.h>

namespace keel {

// Computes one gradient per input from the gradients of the outputs. Each result must be empty or
// have the input's shape (ValueError otherwise) and dtype (TypeError otherwise).
// output_gradients[i] is empty if no gradient reached output i. The function is called once by each
// gradient() call that needs it. It must own what it captures, because a tape may outlive the code
// that recorded it.
using Backward = std::function<std::vector<Gradient>(std::span<const Gradient> output_gradients)>;

// The result of a forward function: its outputs and the gradient function for them.
struct WithBackward {
  std::vector<Tensor> outputs;
  Backward backward;
};

// Runs `forward` without recording its ops, then records a single op from `inputs` to the outputs
// of `forward`, whose gradient is `backward`. Works on eager tensors only: throws RuntimeError if
// an input is symbolic.
std::vector<Tensor> custom_gradient(const std::vector<Tensor>& inputs,
                                    const std::function<WithBackward()>& forward);

}  // namespace keel
