// Operation: a node of a functional graph: an Op or a Layer.
// Op: a pure, differentiable function of tensors.
//
// Every op call goes through dispatch(), which does exactly one of three things:
//   symbolic inputs  -> infer the output specs, add a graph node
//   a tape watches   -> compute, and record what vjp() will need
//   otherwise        -> compute
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

// How an operation is called, beside its inputs.
struct CallOptions {
  std::optional<bool> training = {};  // unset: inherit from the enclosing call
};

class Operation : public std::enable_shared_from_this<Operation> {
 public:
  virtual ~Operation() = default;
  virtual const std::string& class_name() const = 0;
  // Runs the operation on new inputs, as replaying a graph does.
  virtual Tensors replay(const Tensors& inputs, const CallOptions& options) = 0;
};

// What an op's vjp() may read.
struct VjpArgs {
  std::span<const TensorSpec> input_specs, output_specs;
  std::span<const Tensor> inputs, outputs;     // empty handle where Retain says no
  std::span<const Gradient> output_gradients;  // none where nothing flowed back
  uint32_t wanted = ~0u;                       // bit i: the gradient of input i will be used

  // Whether to spend time on the gradient of an input; always for those beyond the mask.
  bool wants(size_t input) const { return input >= 32 || (wanted >> input & 1) != 0; }
};

// Bit i: input (output) i is kept alive by the tape for vjp().
struct Retain {
  uint32_t inputs = ~0u, outputs = ~0u;
};

class Op : public Operation {
 public:
  explicit Op(std::string class_name) : class_name_(std::move(class_name)) {}
  const std::string& class_name() const final { return class_name_; }

  // Specs of the outputs; checks dtypes and shapes, unknown dimensions allowed.
  virtual std::vector<TensorSpec> infer(std::span<const TensorSpec> inputs) const = 0;
  // The outputs. Inputs are concrete and have passed infer().
  virtual std::vector<Tensor> compute(std::span<const Tensor> inputs) const = 0;
  // One gradient per input (none where there is none to give), of its shape (ValueError of the
  // tape) and dtype (TypeError), in terms of differentiable ops, so that a second tape
  // differentiates it again. NotImplementedError by default.
  virtual std::vector<Gradient> vjp(const VjpArgs& args) const;
  virtual Retain retain() const { return {}; }
  // False for ops whose outputs never depend smoothly on their inputs (comparisons, rounding):
  // tapes do not record them.
  virtual bool differentiable() const { return true; }

  Tensors replay(const Tensors& inputs, const CallOptions& options) final;

 private:
  const std::string class_name_;
};

std::vector<Tensor> dispatch(std::shared_ptr<const Op> op, std::vector<Tensor> inputs);

// For ops with one output.
template <class O>
Tensor dispatch1(O op, std::vector<Tensor> inputs) {
  return dispatch(std::make_shared<const O>(std::move(op)), std::move(inputs))[0];
}

}  // namespace keel
