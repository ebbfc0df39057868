// OperatorLayer: an operator of a graph as a layer.
#pragma once

#include <memory>
#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of OperatorLayer.
struct OperatorOptions {
  std::string function = {};          // a function of keras.ops: "mean"
  Config arguments = Config::dict();  // by name; {"__tensor_number__": i} is input i
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Applies a function of keras.ops to its inputs, which are a tensor or a list of tensors. It stands
// for operators of Keras's graphs that no layer computes: tf.reduce_mean(x, 1) of Keras 2, ops.sum
// of Keras 3. Only this library has the class.
class OperatorLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Operator";
  using Options = OperatorOptions;
  // Throws NotImplementedError, naming it, for an unknown function or argument.
  explicit OperatorLayer(Options options);
  Config get_config() const override;
  // Creates a layer from get_config().
  static std::shared_ptr<OperatorLayer> from_config(const Config& config);

 private:
  // Throws ValueError, naming the layer and the function, if the arguments do not fit.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensors compute(const std::vector<Tensor>& inputs) const;

  const Options options_;
};

}  // namespace keel
