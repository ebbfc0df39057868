// BatchNormalization: normalizes each channel by the statistics of the batch
// (keras.layers.BatchNormalization; Ioffe and Szegedy 2015).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The bounds of batch renormalization. A member that is not set does not bound.
struct RenormClipping {
  std::optional<double> rmax = {}, rmin = {};  // bounds of r, the ratio of the deviations
  std::optional<double> dmax = {};             // bound of |d|, the shift of the mean
};
// Converts to and from a dict. decode() throws ValueError for a key that is not a member.
Config encode(const RenormClipping& v);
void decode(const Config& c, RenormClipping& v);

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
  bool synchronized = false;         // compute the statistics over the rows of all replicas
  bool renorm = false;               // correct the statistics of the batch; see below
  std::optional<RenormClipping> renorm_clipping = {};  // bounds of the correction; unset: none
  double renorm_momentum = 0.99;  // weight of the previous averages of renorm, in [0, 1]
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
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
    field("synchronized", self.synchronized);
    field("renorm", self.renorm);
    field("renorm_clipping", self.renorm_clipping);
    field("renorm_momentum", self.renorm_momentum);
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
// Each replica of a strategy uses its own rows and keeps its own averages. With `synchronized`, the
// statistics are those of the rows of all replicas, so that the number of replicas changes results
// only by rounding. All replicas must then call the layer in the same order, and all or none of
// them differentiate its output. Outside the replicas,
// and while a model predicts or is evaluated in them, the averages are the mean over the replicas,
// which is also the value in files. A layer that your own code calls in a replica uses the averages
// of that replica.
//
// With `renorm` (Ioffe 2017), training normalizes by slowly changing averages, while gradients are
// those of the statistics of the batch:
//   r = clip(deviation / renorm_stddev, rmin, rmax), d = clip((mean - renorm_mean) / renorm_stddev,
//   -dmax, dmax), y = gamma * ((x - mean) / deviation * r + d) + beta
// where deviation = sqrt(variance + epsilon); r and d are constants for gradients. The layer then
// has the weights moving_stddev, renorm_mean and renorm_stddev as well. moving_stddev averages the
// deviation, and moving_variance is max(moving_stddev^2 - epsilon, 0).
//
// Repeated calls of one layer in a functional model update the averages in Keras's order, by depth.
//
// If the input has a mask, only unmasked steps contribute to the statistics of the batch: their
// sums are divided by (number of steps + 1e-7). All steps are normalized.
class BatchNormalizationLayer final : public OptionsLayer<BatchNormalizationOptions> {
 public:
  static constexpr char kClassName[] = "BatchNormalization";
  // Throws ValueError for more than one axis, a momentum outside [0, 1], epsilon < 0, and
  // renorm_clipping with rmin > rmax or dmax < 0.
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
  // Returns the sum over `axes`, which stay with size 1; over all replicas if synchronized.
  Tensor sum(const Tensor& x, const std::vector<int>& axes) const;
  // Returns r * z + d for the normalized input z; see the comment of the class.
  Tensor renormalized(const Tensor& z, const Tensor& mean, const Tensor& deviation) const;
  // Updates the moving averages, and those of renorm, by the statistics of a batch.
  void update_averages(const Tensor& mean, const Tensor& variance) const;
  void average(const Variable& moving, const Tensor& batch, double momentum) const;

  Variable gamma_, beta_, moving_mean_, moving_variance_;
  Variable moving_stddev_, renorm_mean_, renorm_stddev_;  // empty without renorm
};

namespace layers {
using BatchNormalization = LayerHandle<BatchNormalizationLayer>;
}

}  // namespace keel
