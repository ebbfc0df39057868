#include "autodiff/custom_gradient.h"

#include <algorithm>

#include "autodiff/tape.h"

namespace keel {
namespace {

// Kernels take gradients as they come, by the sizes of what they are gradients of.
void check(const Gradient& gradient, size_t input, const TensorSpec& spec) {
  Shape shape;
  DType dtype = {};
  if (gradient.is_slices()) {
    const IndexedSlices& s = gradient.slices();
    shape = s.dense_shape;
    dtype = s.values.dtype();
    const bool fit =
        s.ids.rank() == 1 && shape.rank() > 0 && s.values.shape() == shape.with(0, s.ids.dim(0));
    if (!fit) {
      throw ValueError("custom_gradient: backward returned slices for input ", input,
                       " that do not fit: ids of shape ", s.ids.shape(), " and values of shape ",
                       s.values.shape(), " in ", shape);
    }
  } else {
    const Tensor t = gradient.dense();
    shape = t.shape();
    dtype = t.dtype();
  }
  if (dtype != spec.dtype) {
    throw TypeError("custom_gradient: backward returned a gradient of ", dtype, " for input ",
                    input, " of ", spec.dtype);
  }
  if (shape != spec.shape) {
    throw ValueError("custom_gradient: backward returned a gradient of shape ", shape,
                     " for input ", input, " of shape ", spec.shape);
  }
}

// Stands on the tape for a function that has already run.
class CustomGradient final : public Op {
 public:
  CustomGradient(std::vector<Tensor> outputs, Backward backward, size_t inputs)
      : Op("CustomGradient"),
        outputs_(std::move(outputs)),
        backward_(std::move(backward)),
        inputs_(inputs) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec>) const override {
    std::vector<TensorSpec> specs;
    for (const Tensor& t : outputs_) specs.push_back(t.spec());
    return specs;
  }
  std::vector<Tensor> compute(std::span<const Tensor>) const override {
    // New identities: an output that is also an input must be a different tensor for the tape.
    std::vector<Tensor> out;
    for (const Tensor& t : outputs_) out.push_back(t.aliased());
    return out;
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    std::vector<Gradient> gradients = backward_(args.output_gradients);
    if (gradients.size() != inputs_) {
      throw ValueError("custom_gradient: backward returned ", gradients.size(), " gradients for ",
                       inputs_, " inputs");
    }
    for (size_t i = 0; i < inputs_; ++i) {
      // Nobody reads the gradient of an integer.
      if (gradients[i] && is_floating(args.input_specs[i].dtype)) {
        check(gradients[i], i, args.input_specs[i]);
      }
    }
    return gradients;
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  const std::vector<Tensor> outputs_;
  const Backward backward_;
  const size_t inputs_;
};

}  // namespace

std::vector<Tensor> custom_gradient(const std::vector<Tensor>& inputs,
                                    const std::function<WithBackward()>& forward) {
  if (std::ranges::any_of(inputs, &Tensor::is_symbolic)) {
    throw RuntimeError("custom_gradient: the inputs are symbolic; it runs on values only");
  }
  WithBackward result;
  {
    const NoGradient pause;
    result = forward();
  }
  return dispatch(std::make_shared<const CustomGradient>(std::move(result.outputs),
                                                         std::move(result.backward), inputs.size()),
                  inputs);
}

}  // namespace keel
