// Layer: weights plus a function of tensors (keras.layers.Layer).
//
// Calling a layer (operator()) performs these steps in order:
//   1. Call build(specs) if this is the first call, which creates the weights.
//   2. Determine `training`: the caller's option, else the enclosing layer's value, else false.
//   3. Call call(inputs, context).
//   4. Attach masks to the outputs (compute_mask), and add the activity regularizer's loss.
//   5. If the inputs are symbolic, record one graph node for the whole layer.
// Subclasses implement build_weights() and call(), and also get_config() if files may name them
// (layers/registry.h). call() runs on symbolic tensors too, so output shapes follow from it and
// need no separate code.
//
// Layers are not copyable; users hold handles (LayerHandle<T>).
//
// Thread safety: several replicas may call one layer concurrently. The first call builds the layer
// while the others wait.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/config/dtype_policy.h>
#include <keel/layers/layer_types.h>
#include <keel/layers/regularizers.h>

namespace keel {

class Planner;
struct PlanValue;
using PlanValues = Nest<PlanValue>;  // values of a serving plan (layers/serving/steps/planner.h)

// The context of one call of a layer.
struct CallContext {
  bool training = false;  // whether the call is part of a training step
};

// Base class of all layers. See the comment at the top of this file.
class Layer : public Operation {
 public:
  using CallOptions = keel::CallOptions;  // options of a call; classes with more define their own

  ~Layer() override;

  // Calls the layer on a structure of tensors.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  // Calls a layer that takes one tensor and returns one. Throws TypeError if the layer returns a
  // structure.
  Tensor operator()(const Tensor& input, const CallOptions& options = {});

  const std::string& class_name() const final { return class_name_; }  // "Dense", as in files
  const std::string& name() const { return name_; }  // unique within a model, such as "dense_1"
  DType dtype() const { return dtype_policy_.variable_dtype(); }     // for variables and results
  const DTypePolicy& dtype_policy() const { return dtype_policy_; }  // computation and variables
  bool built() const { return built_; }                              // true once the weights exist
  bool trainable() const { return trainable_; }  // false: the weights are frozen
  // Sets `trainable` for this layer and all layers inside it.
  void set_trainable(bool trainable);

  // Return the weights of this layer and of the layers inside it. A layer that is reached twice
  // counts once. weights() lists the trainable weights first, then the others. variables() adds
  // variables that are not weights, such as random state.
  std::vector<Variable> trainable_variables() const;
  std::vector<Variable> non_trainable_variables() const;
  std::vector<Variable> weights() const;
  std::vector<Variable> variables() const;
  // Returns the total number of elements of weights(). Virtual variables are not counted.
  int64_t count_params() const;
  const std::vector<LayerHandle<Layer>>& sublayers() const { return sublayers_; }

  // Creates the weights of this layer and of the layers inside it for inputs of these specs. The
  // first call of the layer does this implicitly; building again has no effect.
  void build(const Specs& inputs);
  // Returns the specs of the outputs for inputs of these specs. Builds the layer if needed.
  Specs compute_output_spec(const Specs& inputs);

  // Returns the scalars that training adds to the loss. These are the arguments of add_loss() in
  // this layer and the layers inside it during this thread's last outermost call, and the
  // regularization losses of the trainable weights, which are computed now.
  std::vector<Tensor> losses() const;

  // Returns whether the layer uses masks of its inputs. If not, and if the layer contains no other
  // layers, call() receives inputs without masks and the outputs have none.
  virtual bool supports_masking() const { return false; }
  // Returns the masks of the flattened outputs, with an empty tensor for an output without a mask.
  // Outputs beyond the end of the result have none. An output to which call() attached a mask keeps
  // that mask. The default returns the masks of the inputs. It is called only if masking is
  // supported.
  virtual std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const;

  // Returns the state of this layer without the layers inside it. The default returns its
  // variables.
  virtual std::vector<StateEntry> state_entries() const;

  // Returns messages to show at the end of training. fit() prints one line for each message of this
  // layer and of the layers inside it.
  virtual std::vector<std::string> training_notices() const { return {}; }

  // Returns whether the layer implements prefetch(); fit() checks this before it calls prefetch().
  virtual bool supports_prefetch() const { return false; }
  // Announces the inputs of the next training step, so that work on them can overlap with the
  // current step. fit() calls this in each replica at the start of a step. Your own models should
  // forward the call to their layers.
  virtual void prefetch(const Tensors&) {}

  // Returns the constructor's parameters under Keras's names, so that from_config creates an equal
  // layer. The default throws NotImplementedError, for classes that files cannot name.
  virtual Config get_config() const;

  // Adds the steps with which a serving plan computes this layer (layers/serving/steps/planner.h)
  // and returns their results, which equal those of call() without training. The default returns
  // nothing, and the plan then calls the layer. The layer is already built, and its inputs carry no
  // masks that it would use.
  virtual std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const;

  // Calls the layer again on `inputs` when a graph is executed.
  Tensors replay(const Tensors& inputs, const CallOptions& options) override {
    return (*this)(inputs, options);
  }

 protected:
  // `options` must have the fields name, trainable and dtype. An empty name is replaced by a unique
  // one, in `options` too, so that the config agrees with the layer. Throws NotImplementedError for
  // a policy with int8 weights unless Options has kQuantizes, and for one with int4 weights unless
  // it has kQuantizesToInt4.
  template <class Options>
  Layer(const char* class_name, Options& options)
      : Layer(
            std::string(class_name), options.name, options.trainable, options.dtype,
            DTypePolicy(options.dtype).int4_weights() ? requires { Options::kQuantizesToInt4; }
                                                      : requires { Options::kQuantizes; }) {}
  // Constructor for classes without options. An empty name is replaced by a unique one.
  explicit Layer(std::string class_name, std::string name = {});

  // Creates the weights for inputs of these specs. Called once, outside of any tape.
  virtual void build_weights(const Specs&) {}
  // Computes the outputs. The inputs may be symbolic tensors.
  virtual Tensors call(const Tensors& inputs, const CallContext& context) = 0;

  // Adds a weight to this layer. Call it in build_weights().
  Variable add_weight(const WeightOptions& options);
  Variable add_weight(Variable variable);
  // Adds a variable that is not a weight: it appears in variables() and in checkpoints only.
  Variable add_state(Variable variable);
  // Drops the layer's own weights and sets the policy, for layers that are converted after
  // building.
  void reset_weights(const DTypePolicy& policy);
  // Adds a scalar to losses(). Call it in call(). A symbolic loss is ignored. Throws ValueError
  // unless `loss` is a floating-point scalar.
  void add_loss(const Tensor& loss) const;
  // Adds the regularizer's loss for each floating-point output at each call, divided by the number
  // of rows as in Keras 3.14. Call it in a constructor.
  void set_activity_regularizer(Regularizer regularizer) {
    activity_regularizer_ = std::move(regularizer);
  }
  // Makes `layer` a sublayer and returns it. Use it in member initializers:
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
  // Runs call(), and adds the masks and the activity loss.
  Tensors call_with_masks(const Tensors& inputs, const CallContext& context);
  void add_regularization(std::vector<const Layer*>& seen, bool parents_trainable,
                          std::vector<Tensor>& out) const;
  void add_numbers(std::vector<uint64_t>& out) const;

  const std::string class_name_;
  const std::string name_;
  const uint64_t number_;  // unique within the process
  DTypePolicy dtype_policy_;
  std::recursive_mutex build_mutex_;  // recursive: a model builds by calling itself
  std::atomic<bool> built_ = false;
  std::atomic<bool> trainable_ = true;
  std::vector<Variable> weights_, states_;
  std::vector<std::pair<Variable, Regularizer>> regularized_;
  Regularizer activity_regularizer_;
  std::vector<LayerHandle<Layer>> sublayers_;
};

}  // namespace keel
