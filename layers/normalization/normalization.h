// Normalization: shifts and scales features to mean 0 and variance 1, by statistics given or
// learned from data (keras.layers.Normalization).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

namespace data {
class Dataset;
}

struct NormalizationOptions {
  std::optional<Axes> axis = Axes(-1);    // that have statistics of their own; unset: one for all
  std::optional<ScalarOrList> mean = {};  // both, or neither: then call adapt()
  std::optional<ScalarOrList> variance = {};
  bool invert = false;  // back from normalized values
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("invert", self.invert);
    field("mean", self.mean);
    field("variance", self.variance);
  }
};

// (x - mean) / max(sqrt(variance), 1e-7), or with invert x * max(sqrt(variance), 1e-7) + mean.
// Input of any numeric dtype; output of the same shape and the layer's dtype. Without a mean
// given, the weights are mean and variance, of the dimensions of the axes, and count (int64
// scalar), none trainable; before adapt() they are 0, 1 and 0.
class NormalizationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Normalization";
  using Options = NormalizationOptions;
  // ValueError if one of mean and variance is given without the other.
  explicit NormalizationLayer(Options options);
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

  // Sets the weights to the mean and biased variance of the data: all rows of a tensor, or of a
  // dataset of batches. What was learned before is forgotten. RuntimeError if a mean was given;
  // ValueError for no data or another shape along the axes.
  void adapt(const Tensor& data);
  void adapt(const data::Dataset& batches);

 private:
  // ValueError unless the dimensions of the axes are known and fit the mean given.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;
  std::vector<int> axes(const Shape& shape) const;

  struct Statistics {
    Tensor mean, deviation;
  };
  Statistics statistics() const;

  const Options options_;
  Variable mean_, variance_, count_;
};

namespace layers {
using Normalization = LayerHandle<NormalizationLayer>;
}

}  // namespace keel
