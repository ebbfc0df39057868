// InputLayer and layers::input: where a functional model's data comes in.
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct InputLayerOptions {
  Shape batch_shape = {};  // with the batch dimension, kUnknown if any size may come
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

// Stands at the top of a graph; has one output and no inputs.
class InputLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "InputLayer";
  using Options = InputLayerOptions;
  // ValueError if both ragged and sparse, or without a batch dimension.
  explicit InputLayer(Options options);

  TensorSpec spec() const;
  // A symbolic tensor that this layer stands for. Call it once: each call makes another node. Not
  // kept here, since its graph node keeps the layer.
  TensorLike make_output();
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }

  const Options options_;
};

struct InputOptions {
  Shape shape = {};  // without the batch dimension
  DType dtype = DType::kFloat32;
  std::string name = {};
  int64_t batch_size = kUnknown;
};

namespace layers {

Tensor input(const InputOptions& options);  // symbolic [batch, shape...]
// Rows of any length, symbolic [batch, (ragged)]; options.shape is not used.
RaggedTensor ragged_input(const InputOptions& options);
SparseTensor sparse_input(const InputOptions& options);  // symbolic sparse [batch, shape...]

}  // namespace layers
}  // namespace keel
