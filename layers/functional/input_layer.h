// InputLayer and layers::input: the entry points of a functional model (keras.layers.InputLayer).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of InputLayer.
struct InputLayerOptions {
  Shape batch_shape = {};  // includes the batch dimension, kUnknown for any size
  DType dtype = DType::kFloat32;
  bool ragged = false;
  bool sparse = false;
  std::string name = {};
  bool trainable = true;

  static void fields(auto& self, auto&& field) {
    field("batch_shape", self.batch_shape);
    field("dtype", self.dtype);
    field("sparse", self.sparse);
    field("ragged", self.ragged);
    field("name", self.name);
  }
};

// The source of a graph; has one output and no inputs.
class InputLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "InputLayer";
  using Options = InputLayerOptions;
  // Throws ValueError if the input is both ragged and sparse, or if batch_shape is empty.
  explicit InputLayer(Options options);

  // Returns the spec of the input.
  TensorSpec spec() const;
  // Returns the symbolic tensor of this layer. Call it once: each call creates another node. The
  // layer does not store the tensor, because the tensor's node owns the layer.
  TensorLike make_output();
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }

  const Options options_;
};

// Options of layers::input and its variants.
struct InputOptions {
  Shape shape = {};  // without the batch dimension
  DType dtype = DType::kFloat32;
  std::string name = {};
  int64_t batch_size = kUnknown;
};

namespace layers {

// Returns a symbolic dense tensor [batch, shape...] (keras.Input).
Tensor input(const InputOptions& options);
// Returns a symbolic ragged tensor [batch, (ragged)], whose rows have any length; options.shape is
// not used.
RaggedTensor ragged_input(const InputOptions& options);
// Returns a symbolic sparse tensor [batch, shape...].
SparseTensor sparse_input(const InputOptions& options);

}  // namespace layers
}  // namespace keel
