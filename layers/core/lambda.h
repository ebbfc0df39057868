// Lambda: a layer that calls a function registered under a name.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/core/dense.h>
#include <keel/layers/layer.h>

namespace keel {

// What the function of a Lambda receives besides the inputs.
struct LambdaCall {
  Config arguments = Config::dict();  // the layer's option of this name
  bool training = false;              // whether the call is part of a training step
};

// The function of a Lambda. The inputs carry their masks. It also runs on symbolic tensors, unless
// the layer has an output_shape. It may be called by several threads at once.
using LambdaFunction = std::function<Tensors(const Tensors& inputs, const LambdaCall& call)>;

namespace layers {

// Registers a function under a name, for Lambda layers and files that refer to it. Replaces a
// function of the same name. Thread safe.
void register_lambda_function(const std::string& name, LambdaFunction function);

}  // namespace layers

// Refers to a function in a config: by its name, or by Python code that Keras has written.
struct FunctionReference {
  FunctionReference() = default;  // to no function
  // Refer to a registered function.
  FunctionReference(std::string name_) : name(std::move(name_)) {}  // NOLINT: implicit
  FunctionReference(const char* name_) : name(name_) {}             // NOLINT: implicit
  std::string name = {};  // as registered; empty for Python code
  Config config = {};     // as read from a file, else null
};
// Convert to and from the form of Keras 3, {"class_name": "function", "config": name}. The forms of
// Keras 1 and 2, and Python code, can also be read. Code is written as it was read.
Config encode(const FunctionReference& function);
void decode(const Config& config, FunctionReference& function);

// Options of Lambda.
struct LambdaOptions {
  FunctionReference function = {};                // required; the name of a registered function
  std::optional<PartialShape> output_shape = {};  // without the batch; unset: from a symbolic call
  // A function whose result is the mask of the output; unset: the output has no mask.
  std::optional<FunctionReference> mask = {};
  Config arguments = Config::dict();  // passed to the function
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Calls a C++ function as a layer (keras.layers.Lambda):
//   layers::register_lambda_function("halve", [](const Tensors& x, const LambdaCall&) {
//     return x.tensor() / 2;
//   });
//   const layers::Lambda halve({.function = "halve"});
// A function may also have the name of an activation, such as "relu".
//
// Files of Keras contain the name of the function, with or without the package under which Python
// registers it. If a file contains Python code instead, such as that of a lambda expression, the
// function that is registered under the name of the layer is called.
class LambdaLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Lambda";
  using Options = LambdaOptions;
  // Throws ValueError if the function is not set, and NotImplementedError, naming the layer, if no
  // function is registered under the name.
  explicit LambdaLayer(Options options);

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  Config get_config() const override;
  // Creates the layer from its config.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  // Returns the function that a reference stands for.
  LambdaFunction find(const FunctionReference& reference) const;

  const Options options_;
  const LambdaFunction function_;
  LambdaFunction mask_;  // empty if the output has no mask
};

namespace layers {
// A handle to the layer, under Keras's name.
using Lambda = LayerHandle<LambdaLayer>;
}  // namespace layers

}  // namespace keel
