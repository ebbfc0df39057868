// Functional: a model defined by a graph of layer calls (keras.Model(inputs, outputs)).
// InputLayer and layers::input: the entry points of a functional model (keras.layers.InputLayer).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/training/model.h>

namespace keel {

// Options of InputLayer.
struct InputLayerOptions {
  Shape batch_shape = {};  // includes the batch dimension, kUnknown for any size
  DType dtype = DType::kFloat32;
  bool ragged = false;  // true: a RaggedTensor; not together with `sparse`
  bool sparse = false;  // true: a SparseTensor
  std::string name = {};
  bool trainable = true;

  static constexpr const char* kUnsaved[] = {"trainable"};  // configs of Keras do not have it
  static constexpr void fields(auto& self, auto&& field) {
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
  int64_t batch_size = kUnknown;  // number of rows of every batch; default: any
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

// Options of Functional.
struct FunctionalOptions {
  Tensors inputs;   // symbolic results of layers::input, ragged_input or sparse_input
  Tensors outputs;  // symbolic tensors that depend on `inputs` only
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Computes `outputs` from `inputs`, which are all symbolic; inputs are results of layers::input,
// ragged_input or sparse_input. Call the model with a structure like `inputs`. If `inputs` is a
// tensor, a list or a tuple, the model also accepts a dict by input name. Further keys of a dict
// are ignored.
//
// Throws ValueError if the outputs depend on anything but the inputs, if an input is listed twice
// or is not a result of layers::input, or if two layers have the same name.
class FunctionalModel final : public Model {
 public:
  static constexpr char kClassName[] = "Functional";
  using Options = FunctionalOptions;
  explicit FunctionalModel(Options options);

  // Returns the layers in Keras's order by depth, input layers included, ops omitted.
  std::vector<LayerHandle<Layer>> layers() const override { return layers_; }
  const Tensors& inputs() const { return inputs_; }
  const Tensors& outputs() const { return outputs_; }

  // Returns the graph nodes in execution order, input layers first.
  const std::vector<std::shared_ptr<const GraphNode>>& nodes() const { return nodes_; }

  std::optional<ModelInputs> symbolic_inputs() const override;
  std::vector<std::string> output_layer_names() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  // Prefetches for layers that are called once, directly on inputs of the model.
  bool supports_prefetch() const override;
  void prefetch(const Tensors& inputs) override;
  // Returns Keras's config of a functional model (layers, inbound_nodes, input_layers,
  // output_layers). Throws NotImplementedError, naming the op, if the graph contains an op, because
  // files hold layers only.
  Config get_config() const override;
  // Reads the configs of Keras 2 and Keras 3.
  static LayerHandle<FunctionalModel> from_config(const Config& config);

 private:
  // Execution plan: where each result of a node is stored while the graph runs.
  struct Plan;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Tensors inputs_, outputs_;
  std::vector<std::shared_ptr<const GraphNode>> nodes_;
  std::vector<LayerHandle<Layer>> layers_;
  std::shared_ptr<const Plan> plan_;
};

using Functional = LayerHandle<FunctionalModel>;

}  // namespace keel
