// BatchNormalization: normalizes each channel by the statistics of the batch
// (keras.layers.BatchNormalization; Ioffe and Szegedy 2015).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of BatchNormalization.
struct BatchNormalizationOptions {
  Axes axis = -1;                          // axis of the channels; exactly one
  double momentum = 0.99;                  // weight of the previous moving averages, in [0, 1]
  double epsilon = 1e-3;                   // added to the variance, >= 0
  bool center = true;                      // add beta
  bool scale = true;                       // multiply by gamma
  Initializer beta_initializer = "zeros";  // initial values of beta
  Initializer gamma_initializer = "ones";  // initial values of gamma
  Initializer moving_mean_initializer = "zeros";     // initial values of moving_mean
  Initializer moving_variance_initializer = "ones";  // initial values of moving_variance
  Regularizer beta_regularizer = {};                 // penalty on beta; unset: none
  Regularizer gamma_regularizer = {};                // penalty on gamma; unset: none
  Constraint beta_constraint = {};                   // applied to beta after each step; unset: none
  Constraint gamma_constraint = {};  // applied to gamma after each step; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("momentum", self.momentum);
    field("epsilon", self.epsilon);
    field("center", self.center);
    field("scale", self.scale);
    field("beta_initializer", self.beta_initializer);
    field("gamma_initializer", self.gamma_initializer);
    field("moving_mean_initializer", self.moving_mean_initializer);
    field("moving_variance_initializer", self.moving_variance_initializer);
    field("beta_regularizer", self.beta_regularizer);
    field("gamma_regularizer", self.gamma_regularizer);
    field("beta_constraint", self.beta_constraint);
    field("gamma_constraint", self.gamma_constraint);
  }
};

// Computes gamma * (x - mean) / sqrt(variance + epsilon) + beta. Input and output have the same
// shape. The weights gamma, beta, moving_mean and moving_variance are [channels].
//
// In training, mean and biased variance are computed over all axes of the batch except `axis`, and
// the moving averages are updated: a <- momentum * a + (1 - momentum) * batch. Otherwise, and if
// the layer is not trainable, the moving averages are used as statistics. A batch without rows
// changes nothing.
//
// Each replica of a strategy uses its own rows and keeps its own averages. Outside the replicas,
// and while a model predicts or is evaluated in them, the averages are the mean over the replicas,
// which is also the value in files. A layer that your own code calls in a replica uses the averages
// of that replica.
//
// Repeated calls of one layer in a functional model update the averages in Keras's order, by depth.
//
// If the input has a mask, only unmasked steps contribute to the statistics of the batch: their
// sums are divided by (number of steps + 1e-7). All steps are normalized.
class BatchNormalizationLayer final : public OptionsLayer<BatchNormalizationOptions> {
 public:
  static constexpr char kClassName[] = "BatchNormalization";
  // Throws ValueError for more than one axis, momentum outside [0, 1] or epsilon < 0.
  explicit BatchNormalizationLayer(Options options);

  bool supports_masking() const override { return true; }
  const Variable& moving_mean() const { return moving_mean_; }          // empty until built
  const Variable& moving_variance() const { return moving_variance_; }  // empty until built
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  // Throws ValueError unless the number of channels is known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;
  struct Moments {
    Tensor mean, centered, variance;  // centered: x - mean; reduced axes of the others have size 1
  };
  // Throws ValueError unless the mask has one dimension less than x.
  Moments moments(const Tensor& x, const Tensor& mask, const std::vector<int>& axes) const;
  Tensor from_batch(const Tensor& x, const Tensor& mask, int axis, const Shape& broadcast);
  Tensor from_averages(const Tensor& x, const Shape& broadcast) const;
  void average(const Variable& moving, const Tensor& batch) const;

  Variable gamma_, beta_, moving_mean_, moving_variance_;
};

namespace layers {
using BatchNormalization = LayerHandle<BatchNormalizationLayer>;
}

}  // namespace keel
