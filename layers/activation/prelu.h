// PReLU: a learned slope below zero (keras.layers.PReLU; He et al. 2015).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of PReLULayer.
struct PReLUOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  std::optional<Axes> shared_axes = {};  // axes along which the slope is shared; never the batch
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("alpha_initializer", self.alpha_initializer);
    field("alpha_regularizer", self.alpha_regularizer);
    field("alpha_constraint", self.alpha_constraint);
    field("shared_axes", self.shared_axes);
  }
};

// Computes max(x, 0) + alpha * min(x, 0), with gradient 0 at 0. The input has rank 2 or more,
// [batch, dims...], and the output has the same shape. The weight alpha is [dims...], with 1 along
// shared_axes.
class PReLULayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "PReLU";
  using Options = PReLUOptions;
  explicit PReLULayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  const Variable& alpha() const { return alpha_; }  // empty until built
  bool supports_masking() const override { return true; }
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError for a shared axis that is the batch or out of range, and unless all
  // dimensions that are not shared are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  Variable alpha_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using PReLU = LayerHandle<PReLULayer>;
}  // namespace layers

}  // namespace keel
