// Operation is a node of a functional graph: an Op or a Layer.
// Op is a pure, differentiable function of tensors.
//
// Every op call goes through dispatch(), which does exactly one of three things:
//   if an input is symbolic: infers the output specs and adds a graph node
//   if a tape is recording:  computes the outputs and records what vjp() needs
//   otherwise:               computes the outputs
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/autodiff/gradient.h>
#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// Arguments of an operation's call other than its inputs.
struct CallOptions {
  std::optional<bool> training = {};  // unset: inherited from the enclosing call
};

// A function that can be a node of a graph: an Op or a Layer.
class Operation : public std::enable_shared_from_this<Operation> {
 public:
  virtual ~Operation() = default;
  // Returns the name of the class, which error messages and profiles contain.
  virtual const std::string& class_name() const = 0;
  // Runs the operation on new inputs; used to replay a graph.
  virtual Tensors replay(const Tensors& inputs, const CallOptions& options) = 0;
};

// The arguments of Op::vjp().
struct VjpArgs {
  std::span<const TensorSpec> input_specs, output_specs;
  std::span<const Tensor> inputs, outputs;     // empty handles where Retain is not set
  std::span<const Gradient> output_gradients;  // none where no gradient reached the output
  uint32_t wanted = ~0u;                       // bit i: the gradient of input i is used

  // Returns true if the gradient of `input` is worth computing. Always true for inputs at index 32
  // and above, which the mask does not cover.
  bool wants(size_t input) const { return input >= 32 || (wanted >> input & 1) != 0; }
};

// Selects the tensors that a tape keeps for vjp(): bit i stands for input (output) i. Tensors at
// index 32 and above are kept only if all bits are set.
struct Retain {
  uint32_t inputs = ~0u, outputs = ~0u;
};

// A pure function of tensors with a gradient. Implementations are immutable, because tapes and
// graphs share them.
class Op : public Operation {
 public:
  explicit Op(std::string class_name) : class_name_(std::move(class_name)) {}
  const std::string& class_name() const final { return class_name_; }

  // Returns the specs of the outputs. Checks dtypes and shapes; dimensions may be unknown.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const = 0;
  // Returns the outputs. The inputs are concrete and have passed infer().
  virtual std::vector<Tensor> compute(std::span<const Tensor> inputs) const = 0;
  // Returns one gradient per input, or none for an input without a gradient. A gradient must have
  // the input's shape (the tape throws ValueError otherwise) and dtype (TypeError). Implementations
  // compute it with differentiable ops, so that a second tape can differentiate it again. The
  // default throws NotImplementedError.
  virtual std::vector<Gradient> vjp(const VjpArgs& args) const;
  // Returns the inputs and outputs that vjp() reads; all of them by default.
  virtual Retain retain() const { return {}; }
  // Returns false for ops whose outputs do not depend smoothly on their inputs (comparisons,
  // rounding). Tapes do not record them.
  virtual bool differentiable() const { return true; }

  // Calls dispatch() on the leaves of `inputs`. The options do not apply to ops.
  Tensors replay(const Tensors& inputs, const CallOptions& options) final;

 private:
  const std::string class_name_;
};

// Calls `op` on `inputs` as described at the top of this file and returns its outputs.
std::vector<Tensor> dispatch(std::shared_ptr<const Op> op, std::vector<Tensor> inputs);

// Calls an op that has a single output and returns that output.
template <class O>
Tensor dispatch1(O op, std::vector<Tensor> inputs) {
  return dispatch(std::make_shared<const O>(std::move(op)), std::move(inputs))[0];
}

}  // namespace keel
