#include <algorithm>

#include <keel/autodiff/tape.h>
#include <keel/framework/base/function_ref.h>

namespace keel {
namespace {

// Represents on the tape a function that has already run.
class CustomGradient final : public Op {
 public:
  CustomGradient(std::vector<Tensor> outputs, Backward backward)
      : Op("CustomGradient"), outputs_(std::move(outputs)), backward_(std::move(backward)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec>) const override {
    std::vector<TensorSpec> specs;
    for (const Tensor& t : outputs_) specs.push_back(t.spec());
    return specs;
  }
  std::vector<Tensor> compute(std::span<const Tensor>) const override {
    // Aliases give the outputs new ids: the tape must see an output that is also an input as a
    // different tensor.
    std::vector<Tensor> out;
    for (const Tensor& t : outputs_) out.push_back(t.aliased());
    return out;
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return backward_(args.output_gradients);
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  const std::vector<Tensor> outputs_;
  const Backward backward_;
};

}  // namespace

std::vector<Tensor> custom_gradient(const std::vector<Tensor>& inputs,
                                    FunctionRef<WithBackward()> forward) {
  if (std::ranges::any_of(inputs, &Tensor::is_symbolic)) {
    throw RuntimeError("custom_gradient: the inputs are symbolic; call it on eager tensors");
  }
  WithBackward result;
  {
    // Not NoGradient: the ops in `forward` keep the precision of a training step.
    const SuspendRecording parts;
    result = forward();
  }
  return dispatch(
      std::make_shared<const CustomGradient>(std::move(result.outputs), std::move(result.backward)),
      inputs);
}

}  // namespace keel
