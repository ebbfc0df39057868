// GroupNormalization: normalizes groups of a sample's channels by their own statistics
// (keras.layers.GroupNormalization; Wu and He 2018).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of GroupNormalization.
struct GroupNormalizationOptions {
  int64_t groups = 32;  // a divisor of the number of channels; -1: one group per channel
  int axis = -1;        // axis of the channels; not the batch axis
  double epsilon = 1e-3;
  bool center = true;  // add beta
  bool scale = true;   // multiply by gamma
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
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
// over all elements of a sample in a group of adjacent channels. The variance is computed as
// mean(x^2) - mean(x)^2, as in Keras. Output has the shape and mask of the input; gamma and beta
// are [channels].
class GroupNormalizationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "GroupNormalization";
  using Options = GroupNormalizationOptions;
  // Throws ValueError for epsilon < 0, and unless groups is positive or -1.
  explicit GroupNormalizationLayer(Options options);
  bool supports_masking() const override { return true; }
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the number of channels is known and a multiple of groups, and if the
  // axis is the batch axis or out of range.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;
  int axis_of(const Shape& shape) const;

  const Options options_;
  int64_t groups_ = 0;
  Variable gamma_, beta_;
};

namespace layers {
using GroupNormalization = LayerHandle<GroupNormalizationLayer>;
}

}  // namespace keel
