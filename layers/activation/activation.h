// Layers that apply an activation function: Activation, ReLU, LeakyReLU, ELU, PReLU and Softmax.
//
// The output has the shape and mask of the input. Integers are first cast to the layer's dtype.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of Activation.
struct ActivationOptions {
  Activation activation = "linear";  // a name, or your own function
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("activation", self.activation);
  }
};

// Computes activation(x) (keras.layers.Activation).
class ActivationLayer final : public OptionsLayer<ActivationOptions> {
 public:
  static constexpr char kClassName[] = "Activation";
  explicit ActivationLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

// Options of ReLU.
struct ReLUOptions {
  std::optional<double> max_value = {};  // largest result, >= 0; unset: no limit
  double negative_slope = 0.0;           // slope at and below the threshold, >= 0
  double threshold = 0.0;                // >= 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("max_value", self.max_value);
    field("negative_slope", self.negative_slope);
    field("threshold", self.threshold);
  }
};

// Computes min(x, max_value) where x > threshold, and negative_slope * (x - threshold) elsewhere
// (keras.layers.ReLU). As in Keras, the limit applies only to values above the threshold.
//
// The gradient at x = threshold is 0, except that it is negative_slope if the threshold is 0 and
// there is no limit. The gradient at x = max_value is 1, except that it is 0 if max_value is 6 and
// the threshold is 0 (relu6).
class ReLULayer final : public OptionsLayer<ReLUOptions> {
 public:
  static constexpr char kClassName[] = "ReLU";
  // Throws ValueError for a negative option.
  explicit ReLULayer(Options options);
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
};

// Options of LeakyReLU.
struct LeakyReLUOptions {
  double negative_slope = 0.3;  // slope at and below 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("negative_slope", self.negative_slope);
  }
};

// Computes x where x > 0, else negative_slope * x (keras.layers.LeakyReLU). The gradient is 1 or
// negative_slope, respectively.
class LeakyReLULayer final : public OptionsLayer<LeakyReLUOptions> {
 public:
  static constexpr char kClassName[] = "LeakyReLU";
  explicit LeakyReLULayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
};

// Options of ELU.
struct ELUOptions {
  double alpha = 1.0;  // the result approaches -alpha for small x
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("alpha", self.alpha);
  }
};

// Computes x where x > 0, else alpha * (e^x - 1) (keras.layers.ELU; Clevert et al. 2015).
class ELULayer final : public OptionsLayer<ELUOptions> {
 public:
  static constexpr char kClassName[] = "ELU";
  explicit ELULayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
};

// Options of PReLU.
struct PReLUOptions {
  Initializer alpha_initializer = "zeros";  // initial values of alpha
  Regularizer alpha_regularizer = {};       // penalty on alpha; unset: none
  Constraint alpha_constraint = {};         // applied to alpha after each step; unset: none
  std::optional<Axes> shared_axes = {};     // axes along which the slope is shared; never the batch
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("alpha_initializer", self.alpha_initializer);
    field("alpha_regularizer", self.alpha_regularizer);
    field("alpha_constraint", self.alpha_constraint);
    field("shared_axes", self.shared_axes);
  }
};

// Computes max(x, 0) + alpha * min(x, 0) with a learned slope alpha (keras.layers.PReLU; He et al.
// 2015). The gradient at 0 is 0. The input is [batch, dims...] of rank 2 or more. The weight alpha
// is [dims...], with 1 along shared_axes.
class PReLULayer final : public OptionsLayer<PReLUOptions> {
 public:
  static constexpr char kClassName[] = "PReLU";
  explicit PReLULayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  const Variable& alpha() const { return alpha_; }  // empty until built
  bool supports_masking() const override { return true; }

 private:
  // Throws ValueError for a shared axis that is the batch or out of range, and unless all
  // dimensions that are not shared are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  Variable alpha_;
};

// Options of Softmax.
struct SoftmaxOptions {
  Axes axis = -1;  // axes along which the results sum to 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// Computes e^x / sum of e^x along the axes (keras.layers.Softmax). Elements that the input's mask
// excludes are 0 and do not contribute to the sum. A mask of lower rank applies to all elements at
// its positions. Throws ValueError for an axis out of range.
class SoftmaxLayer final : public OptionsLayer<SoftmaxOptions> {
 public:
  static constexpr char kClassName[] = "Softmax";
  explicit SoftmaxLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Activation = LayerHandle<ActivationLayer>;
using ReLU = LayerHandle<ReLULayer>;
using LeakyReLU = LayerHandle<LeakyReLULayer>;
using ELU = LayerHandle<ELULayer>;
using PReLU = LayerHandle<PReLULayer>;
using Softmax = LayerHandle<SoftmaxLayer>;
}  // namespace layers

}  // namespace keel
