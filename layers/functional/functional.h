// Functional: a model given by a graph of layer calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/layers/functional/input_layer.h>
#include <keel/layers/training/model.h>

namespace keel {

struct FunctionalOptions {
  Tensors inputs, outputs;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// The model that computes `outputs` from `inputs`, all symbolic; inputs are results of
// layers::input and its like. Call it with a structure like `inputs`, or, where that is a tensor, a
// list or a tuple, with a dict by their names. A dict may carry further keys, which are left out.
// ValueError if the outputs do not follow from the inputs, if an input is none of layers::input,
// or if two layers share a name.
class FunctionalModel final : public Model {
 public:
  static constexpr char kClassName[] = "Functional";
  using Options = FunctionalOptions;
  explicit FunctionalModel(Options options);

  // Input layers, ops left out, all by depth as Keras sorts them.
  std::vector<LayerHandle<Layer>> layers() const override { return layers_; }
  const Tensors& inputs() const { return inputs_; }
  const Tensors& outputs() const { return outputs_; }

  // Nodes in running order, those of input layers first.
  const std::vector<std::shared_ptr<const GraphNode>>& nodes() const { return nodes_; }

  std::optional<ModelInputs> symbolic_inputs() const override;
  std::vector<std::string> output_layer_names() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  // Of the layers that are called once, on inputs of the model alone.
  bool supports_prefetch() const override;
  void prefetch(const Tensors& inputs) override;
  // Keras's config of a functional model (layers, inbound_nodes, input_layers, output_layers).
  // NotImplementedError if the graph has an op: files hold layers only; the error names the op.
  Config get_config() const override;
  // Reads configs of Keras 2 and 3.
  static LayerHandle<FunctionalModel> from_config(const Config& config);

 private:
  // Where the results of nodes lie while the graph runs.
  struct Plan;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Tensors inputs_, outputs_;
  std::vector<std::shared_ptr<const GraphNode>> nodes_;
  std::vector<LayerHandle<Layer>> layers_;
  std::shared_ptr<const Plan> plan_;
};

using Functional = LayerHandle<FunctionalModel>;

}  // namespace keel
