// Layer: weights plus a function of tensors (keras.layers.Layer).
//
// Calling a layer (operator()) does, in order:
//   1. build(specs) if this is the first call, which makes the weights;
//   2. settle `training`: the caller's choice, else the enclosing layer's, else false;
//   3. call(inputs, context);
//   4. give the outputs their masks (compute_mask), and count the activity regularizer's loss;
//   5. if the inputs are symbolic, record one graph node for the whole layer.
// Subclasses write build_weights() and call(), and get_config() if files may name them
// (layers/registry.h). call() runs on symbolic tensors too, so output shapes follow from it and
// are never written twice.
//
// A layer is not copied: users hold handles (LayerHandle<T>).
// Thread safety: several replicas may call one layer at once; the first builds it
// while the others wait.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <keel/autodiff/graph.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/config/dtype_policy.h>
#include <keel/framework/initializers.h>
#include <keel/layers/constraints.h>
#include <keel/layers/layer_handle.h>
#include <keel/layers/regularizers.h>

namespace keel {

class Planner;
struct PlanValue;
using PlanValues = Nest<PlanValue>;

struct CallContext {
  bool training = false;
};

// What add_weight takes.
struct WeightOptions {
  std::string name;
  Shape shape = {};
  Initializer initializer = "glorot_uniform";
  Regularizer regularizer = {};  // its value is among losses() while the weight is trainable
  Constraint constraint = {};    // optimizers apply it after each step
  bool trainable = true;
  DType dtype = DType::kFloat32;
  VariableSynchronization synchronization = VariableSynchronization::kShared;
  VariableAggregation aggregation = VariableAggregation::kNone;
};

// One tensor of a layer's state, for files and checkpoints. Reading and writing go through it
// whoever holds the values: variables, or the embedding engine of a strategy.
struct StateEntry {
  // Model files hold weights; checkpoints hold all.
  enum class Kind { kWeight, kSlot, kRandomState };
  std::string name;  // inside the layer: "kernel", "users", "users/accumulator"
  TensorSpec spec = {};
  Kind kind = Kind::kWeight;
  bool trainable = true;
  std::function<Tensor()> get;
  std::function<void(const Tensor&)> set;  // ValueError for another shape or dtype
  uint64_t variable_id = 0;                // 0 if no variable holds it
  // ValueError for values that set() would refuse, so that files are refused before anything is
  // set; empty: it takes all.
  std::function<void(const Tensor&)> check = {};

  // The same by rows, for tables that one process may not want, or have, whole: float32 rows
  // [begin, end) among [first, end) of the spec's, which are those that this process keeps.
  struct Rows {
    int64_t first = 0, end = 0;
    std::function<void(int64_t begin, int64_t end, float* out)> read;
    std::function<void(int64_t begin, int64_t end, const float* values)> write;
  };
  std::optional<Rows> rows = {};
};

class Layer : public Operation {
 public:
  using CallOptions = keel::CallOptions;

  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  // Sugar for one tensor in, one out. TypeError if the layer returns a structure.
  Tensor operator()(const Tensor& input, const CallOptions& options = {});

  const std::string& class_name() const final { return class_name_; }
  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_policy_.variable_dtype(); }  // of variables and results
  const DTypePolicy& dtype_policy() const { return dtype_policy_; }
  bool built() const { return built_; }
  bool trainable() const { return trainable_; }
  // Sets it for this layer and all in it.
  void set_trainable(bool trainable);

  // Weights of this layer and of those in it. A layer reached twice counts once. weights() is the
  // trainable ones, then the others; variables() adds what is no weight: random state.
  std::vector<Variable> trainable_variables() const;
  std::vector<Variable> non_trainable_variables() const;
  std::vector<Variable> weights() const;
  std::vector<Variable> variables() const;
  int64_t count_params() const;
  const std::vector<LayerHandle<Layer>>& sublayers() const { return sublayers_; }

  // Makes the weights for inputs of these specs, and those of the layers inside. Calling the
  // layer does it on its own; a second call does nothing.
  void build(const Specs& inputs);
  // Specs of the result for inputs of these specs. Builds the layer.
  Specs compute_output_spec(const Specs& inputs);

  // Scalars that training adds to the loss: what add_loss was given, in this layer and those in
  // it, by this thread's last call from outside of any layer; and the regularizers of trainable
  // weights, computed now.
  std::vector<Tensor> losses() const;

  // Whether masks of the inputs mean anything to this layer. If not, and it holds no other layers,
  // call() sees none and the outputs have none.
  virtual bool supports_masking() const { return false; }
  // Masks of the outputs (an empty tensor for none), flattened; those left out have none. Outputs
  // that call() gave a mask keep it. By default those of the inputs if masking is supported.
  virtual std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const;

  // What this layer, those in it left out, has to keep: by default its variables.
  virtual std::vector<StateEntry> state_entries() const;

  // What a user should hear at the end of training: fit prints a line for each, of this layer and
  // of those in it.
  virtual std::vector<std::string> training_notices() const { return {}; }

  // Whether prefetch() makes use of what it is told; fit asks.
  virtual bool supports_prefetch() const { return false; }
  // Says in a replica, at the start of a training step, what the inputs of the next one will be, so
  // that work on them may begin beside this step. Models of one's own pass it on to their layers.
  virtual void prefetch(const Tensors&) {}

  // The parameters of the constructor under Keras's names, so that from_config makes an equal
  // layer. NotImplementedError by default, for classes that files cannot name.
  virtual Config get_config() const;

  // How plans for serving compute this layer (layers/serving/steps/planner.h): adds steps that give
  // what call() gives without training, and returns their results. Nothing by default: plans call
  // the layer. The layer is built, and the inputs have no masks that it would see.
  virtual std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const;

  Tensors replay(const Tensors& inputs, const CallOptions& options) override {
    return (*this)(inputs, options);
  }

 protected:
  // `options` has name, trainable and dtype; an empty name becomes a unique one, so that the
  // config agrees with the layer. NotImplementedError for a policy of weights in int8 unless it has
  // kQuantizes.
  template <class Options>
  Layer(const char* class_name, Options& options)
      : Layer(
            std::string(class_name), options.name, options.trainable, options.dtype,
            requires { Options::kQuantizes; }) {}
  // For classes without options. An empty name becomes a unique one.
  explicit Layer(std::string class_name, std::string name = {});

  // Makes the weights for inputs of these specs. Runs once, outside any tape.
  virtual void build_weights(const Specs&) {}
  // The function itself. May be called with symbolic tensors.
  virtual Tensors call(const Tensors& inputs, const CallContext& context) = 0;

  // For build_weights(): adds a weight to this layer.
  Variable add_weight(const WeightOptions& options);
  Variable add_weight(Variable variable);
  // Adds a variable that is no weight: it is in variables() and in checkpoints only.
  Variable add_state(Variable variable);
  // For layers that take another form once built: drops their own weights, and sets the policy.
  void reset_weights(const DTypePolicy& policy);
  // For call(): adds a scalar to losses(). Symbolic ones are left out.
  void add_loss(const Tensor& loss) const;
  // For constructors: its value for each floating output, divided by the number of rows as in Keras
  // 3.14, is added at each call.
  void set_activity_regularizer(Regularizer regularizer) {
    activity_regularizer_ = std::move(regularizer);
  }
  // For member initializers: makes `layer` a sublayer and returns it.
  //   layers::Dense hidden_ = track(layers::Dense({.units = 64}));
  template <class T>
  LayerHandle<T> track(LayerHandle<T> layer) {
    sublayers_.push_back(layer);
    return layer;
  }

 private:
  Layer(std::string class_name, std::string& name, bool trainable, const DTypePolicy& dtype,
        bool quantizes);
  enum class Which { kTrainable, kNonTrainable, kState };
  void collect(Which which, bool parents_trainable, std::vector<const Layer*>& seen,
               std::vector<Variable>& out) const;
  void build_once(const Specs& inputs);
  void add_activity_loss(const TensorLike& output) const;
  // call(), with masks and the activity regularizer.
  Tensors call_with_masks(const Tensors& inputs, const CallContext& context);
  void add_regularization(std::vector<const Layer*>& seen, bool parents_trainable,
                          std::vector<Tensor>& out) const;
  void add_numbers(std::vector<uint64_t>& out) const;

  const std::string class_name_;
  const std::string name_;
  const uint64_t number_;  // no other layer of the process has it
  DTypePolicy dtype_policy_;
  std::recursive_mutex build_mutex_;  // held while building: a model builds by calling itself
  std::atomic<bool> built_ = false;
  std::atomic<bool> trainable_ = true;
  std::vector<Variable> weights_, states_;
  std::vector<std::pair<Variable, Regularizer>> regularized_;
  Regularizer activity_regularizer_;
  std::vector<LayerHandle<Layer>> sublayers_;
};

// Base of the many layers that take one dense tensor and return one.
class TensorLayer : public Layer {
 protected:
  using Layer::Layer;
  virtual void build_weights(const TensorSpec&) {}
  virtual Tensor call(const Tensor& x, const CallContext& context) = 0;

 private:
  void build_weights(const Specs& inputs) final;
  Tensors call(const Tensors& inputs, const CallContext& context) final;
};

// For classes of one's own: auto model = make_layer<TwoTower>(64);
template <std::derived_from<Layer> T, class... Args>
LayerHandle<T> make_layer(Args&&... args) {
  return LayerHandle<T>(kAdopt, std::make_shared<T>(std::forward<Args>(args)...));
}

// The name, trainable and dtype fields that every layer's options list first.
void base_fields(auto& self, auto&& field) {
  field("name", self.name);
  field("trainable", self.trainable);
  field("dtype", self.dtype);
}

}  // namespace keel
