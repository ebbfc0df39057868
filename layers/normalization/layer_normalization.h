// Layers that normalize each sample by itself: LayerNormalization, GroupNormalization,
// RMSNormalization and UnitNormalization.
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of LayerNormalization.
struct LayerNormalizationOptions {
  Axes axis = -1;         // axes over which mean and variance are computed
  double epsilon = 1e-3;  // added to the variance, >= 0
  bool center = true;     // add beta
  bool scale = true;      // multiply by gamma
  // Compute gamma * x / sqrt(variance + epsilon); ignores center and scale.
  bool rms_scaling = false;
  Initializer beta_initializer = "zeros";  // initial values of beta
  Initializer gamma_initializer = "ones";  // initial values of gamma
  Regularizer beta_regularizer = {};       // penalty on beta; unset: none
  Regularizer gamma_regularizer = {};      // penalty on gamma; unset: none
  Constraint beta_constraint = {};         // applied to beta after each step; unset: none
  Constraint gamma_constraint = {};        // applied to gamma after each step; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("epsilon", self.epsilon);
    field("center", self.center);
    field("scale", self.scale);
    field("rms_scaling", self.rms_scaling);
    field("beta_initializer", self.beta_initializer);
    field("gamma_initializer", self.gamma_initializer);
    field("beta_regularizer", self.beta_regularizer);
    field("gamma_regularizer", self.gamma_regularizer);
    field("beta_constraint", self.beta_constraint);
    field("gamma_constraint", self.gamma_constraint);
  }
};

// Computes gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the mean and biased variance
// over `axis` of each sample (keras.layers.LayerNormalization; Ba et al. 2016). Output has the
// shape and mask of the input; gamma and beta have the dimensions of the axes.
class LayerNormalizationLayer final : public OptionsLayer<LayerNormalizationOptions> {
 public:
  static constexpr char kClassName[] = "LayerNormalization";
  // Throws ValueError for epsilon < 0.
  explicit LayerNormalizationLayer(Options options);
  bool supports_masking() const override { return true; }

 private:
  // Throws ValueError unless the dimensions of the axes are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  Variable gamma_, beta_;
};

// Options of GroupNormalization.
struct GroupNormalizationOptions {
  int64_t groups = 32;    // a divisor of the number of channels; -1: one group per channel
  int axis = -1;          // axis of the channels; not the batch axis
  double epsilon = 1e-3;  // added to the variance, >= 0
  bool center = true;     // add beta
  bool scale = true;      // multiply by gamma
  Initializer beta_initializer = "zeros";  // initial values of beta
  Initializer gamma_initializer = "ones";  // initial values of gamma
  Regularizer beta_regularizer = {};       // penalty on beta; unset: none
  Regularizer gamma_regularizer = {};      // penalty on gamma; unset: none
  Constraint beta_constraint = {};         // applied to beta after each step; unset: none
  Constraint gamma_constraint = {};        // applied to gamma after each step; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("groups", self.groups);
    field("axis", self.axis);
    field("epsilon", self.epsilon);
    field("center", self.center);
    field("scale", self.scale);
    field("beta_initializer", self.beta_initializer);
    field("gamma_initializer", self.gamma_initializer);
    field("beta_regularizer", self.beta_regularizer);
    field("gamma_regularizer", self.gamma_regularizer);
    field("beta_constraint", self.beta_constraint);
    field("gamma_constraint", self.gamma_constraint);
  }
};

// Computes gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the mean and biased variance
// over all elements of a sample in a group of adjacent channels (keras.layers.GroupNormalization;
// Wu and He 2018). The variance is computed as mean(x^2) - mean(x)^2, as in Keras. Output has the
// shape and mask of the input; gamma and beta are [channels].
class GroupNormalizationLayer final : public OptionsLayer<GroupNormalizationOptions> {
 public:
  static constexpr char kClassName[] = "GroupNormalization";
  // Throws ValueError for epsilon < 0, and unless groups is positive or -1.
  explicit GroupNormalizationLayer(Options options);
  bool supports_masking() const override { return true; }

 private:
  // Throws ValueError unless the number of channels is known and a multiple of groups, and if the
  // axis is the batch axis or out of range.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;
  int axis_of(const Shape& shape) const;

  int64_t groups_ = 0;
  Variable gamma_, beta_;
};

// Options of RMSNormalization.
struct RMSNormalizationOptions {
  Axes axis = -1;         // axes over which the mean is computed
  double epsilon = 1e-6;  // added to the mean, >= 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("epsilon", self.epsilon);
  }
};

// Computes scale * x / sqrt(mean(x^2) + epsilon) (keras.layers.RMSNormalization; Zhang and Sennrich
// 2019). Input and output have the same shape; the weight scale, initially ones, has the dimensions
// of the axes.
class RMSNormalizationLayer final : public OptionsLayer<RMSNormalizationOptions> {
 public:
  static constexpr char kClassName[] = "RMSNormalization";
  // Throws ValueError for epsilon < 0.
  explicit RMSNormalizationLayer(Options options);

 private:
  // Throws ValueError unless the dimensions of the axes are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  Variable scale_;
};

// Options of UnitNormalization.
struct UnitNormalizationOptions {
  Axes axis = -1;  // axes over which the norm is computed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// UnitNormalization: scales each sample to L2 norm 1 (keras.layers.UnitNormalization).
// Computes x / max(|x|, 1e-12), where |x| is the L2 norm over the axes. Output has the shape and
// mask of the input.
class UnitNormalizationLayer final : public OptionsLayer<UnitNormalizationOptions> {
 public:
  static constexpr char kClassName[] = "UnitNormalization";
  explicit UnitNormalizationLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using LayerNormalization = LayerHandle<LayerNormalizationLayer>;
using GroupNormalization = LayerHandle<GroupNormalizationLayer>;
using RMSNormalization = LayerHandle<RMSNormalizationLayer>;
using UnitNormalization = LayerHandle<UnitNormalizationLayer>;
}  // namespace layers

}  // namespace keel
