// Sequential: a linear stack of layers (keras.Sequential).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

// Options of Sequential.
struct SequentialOptions {
  std::vector<LayerHandle<Layer>> layers = {};  // the first ones; add() appends further layers
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Passes the result of each layer to the next one. If the first layer is an InputLayer, it
// determines the input's spec and layers are built as they are added. layers() omits it, as in
// Keras.
class SequentialModel final : public Model {
 public:
  static constexpr char kClassName[] = "Sequential";
  using Options = SequentialOptions;
  explicit SequentialModel(Options options);

  // Appends a layer. Throws ValueError if its name is taken, or for an InputLayer that is not
  // first.
  void add(const LayerHandle<Layer>& layer);
  std::vector<LayerHandle<Layer>> layers() const override;
  // Returns the spec of the input once it is known from an InputLayer or from the first call.
  std::optional<TensorSpec> input_spec() const { return input_spec_; }
  // Returns the name of the InputLayer, or the name that one would have.
  std::string input_name() const { return input_name_.empty() ? "input_" + name() : input_name_; }

  std::optional<ModelInputs> symbolic_inputs() const override;
  std::vector<std::string> output_layer_names() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  // Prefetch for the first layer.
  bool supports_prefetch() const override;
  void prefetch(const Tensors& inputs) override;
  Config get_config() const override;
  // Reads the configs of Keras 1 to 3.
  static LayerHandle<SequentialModel> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  std::optional<TensorSpec> input_spec_;
  std::optional<Specs> output_specs_;  // those of the last layer, once add() has computed them
  std::string input_name_;             // name of the InputLayer, if there is one
};

using Sequential = LayerHandle<SequentialModel>;

}  // namespace keel
