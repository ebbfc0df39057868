// Layers that shift and scale features: Normalization and Rescaling.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

namespace data {
class Dataset;
}

// Options of Normalization.
struct NormalizationOptions {
  std::optional<Axes> axis = Axes(-1);        // axes with separate statistics; unset: one for all
  std::optional<ScalarOrList> mean = {};      // set both, or neither and call adapt()
  std::optional<ScalarOrList> variance = {};  // not negative
  bool invert = false;                        // convert normalized values back
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("invert", self.invert);
    field("mean", self.mean);
    field("variance", self.variance);
  }
};

// Shifts and scales features to mean 0 and variance 1, with given or learned statistics
// (keras.layers.Normalization): computes (x - mean) / max(sqrt(variance), 1e-7) or, if `invert` is
// set, x * max(sqrt(variance), 1e-7) + mean. Input has any numeric dtype; output has the same shape
// and the layer's dtype.
//
// If no mean is given, the layer has the non-trainable weights mean and variance, with the
// dimensions of the axes, and count (int64 scalar). Before adapt() they are 0, 1 and 0.
class NormalizationLayer final : public OptionsLayer<NormalizationOptions> {
 public:
  static constexpr char kClassName[] = "Normalization";
  // Throws ValueError if only one of mean and variance is given.
  explicit NormalizationLayer(Options options);
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

  // Sets the weights to the mean and biased variance of the data: all rows of a tensor, or of a
  // dataset of batches. Previous statistics are discarded. Throws RuntimeError if a mean was given,
  // and ValueError for empty data or another shape along the axes.
  void adapt(const Tensor& data);
  void adapt(const data::Dataset& batches);

 private:
  // Throws ValueError unless the dimensions of the axes are known and match a given mean.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;
  std::vector<int> axes(const Shape& shape) const;

  struct Statistics {
    Tensor mean, deviation;
  };
  Statistics statistics() const;

  Variable mean_, variance_, count_;
};

// Options of Rescaling.
struct RescalingOptions {
  ScalarOrList scale = 1.0;   // one value, or one for each position of the last axis
  ScalarOrList offset = 0.0;  // as for `scale`
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("scale", self.scale);
    field("offset", self.offset);
  }
};

// Computes x * scale + offset (keras.layers.Rescaling). Input has any shape and numeric dtype;
// output has the layer's dtype.
class RescalingLayer final : public OptionsLayer<RescalingOptions> {
 public:
  static constexpr char kClassName[] = "Rescaling";
  explicit RescalingLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Normalization = LayerHandle<NormalizationLayer>;
using Rescaling = LayerHandle<RescalingLayer>;
}  // namespace layers

}  // namespace keel
