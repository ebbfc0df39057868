// Functional: a model defined by a graph of layer calls (keras.Model(inputs, outputs)).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/layers/functional/input_layer.h>
#include <keel/layers/training/model.h>

namespace keel {

// Options of Functional.
struct FunctionalOptions {
  Tensors inputs, outputs;
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
