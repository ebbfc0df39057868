// Sequential: layers one after the other (keras.Sequential).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

struct SequentialOptions {
  std::vector<LayerHandle<Layer>> layers = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Each layer takes what the one before returns. A first InputLayer gives the input's spec, and
// with it the model is built at once; layers() leaves it out, as in Keras.
class SequentialModel final : public Model {
 public:
  static constexpr char kClassName[] = "Sequential";
  using Options = SequentialOptions;
  explicit SequentialModel(Options options);

  void add(const LayerHandle<Layer>& layer);  // ValueError for a name that is taken
  std::vector<LayerHandle<Layer>> layers() const override;
  // Spec of the input once known: from an InputLayer or from the first call.
  std::optional<TensorSpec> input_spec() const { return input_spec_; }
  // Of the InputLayer, or what one would be called.
  std::string input_name() const { return input_name_.empty() ? "input_" + name() : input_name_; }

  std::optional<ModelInputs> symbolic_inputs() const override;
  std::vector<std::string> output_layer_names() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  // Of the first layer.
  bool supports_prefetch() const override;
  void prefetch(const Tensors& inputs) override;
  Config get_config() const override;
  // Reads configs of Keras 1 to 3.
  static LayerHandle<SequentialModel> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  std::optional<TensorSpec> input_spec_;
  std::optional<Specs> output_specs_;  // of the last layer, once add() has had to know it
  std::string input_name_;             // of the InputLayer, if there was one
};

using Sequential = LayerHandle<SequentialModel>;

}  // namespace keel
