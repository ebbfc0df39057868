// Discretization: bins of numbers between boundaries (keras.layers.Discretization).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/quantile_summary.h>
#include <keel/layers/preprocessing/values.h>

namespace keel {

struct DiscretizationOptions {
  std::optional<std::vector<double>> bin_boundaries = {};  // ascending
  std::optional<int64_t> num_bins = {};                    // instead: adapt() finds the boundaries
  double epsilon = 0.01;            // of adapt(): what part of the values it keeps, in (0, 1]
  std::string output_mode = "int";  // or one_hot, multi_hot, count
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("bin_boundaries", self.bin_boundaries);
    field("num_bins", self.num_bins);
    field("epsilon", self.epsilon);
    field("output_mode", self.output_mode);
  }
};

// How many boundaries are not greater than x: {0, 1} cuts into (-inf, 0), [0, 1), [1, inf).
// NaN goes to the last bin. Input: numbers of any shape, layout and numeric dtype; output int64 of
// the same shape and row splits, or float32 encodings (encode_categories). There is no gradient.
class DiscretizationLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Discretization";
  using Options = DiscretizationOptions;
  // ValueError unless boundaries ascend or num_bins > 1 is given, and for boundaries of more bins
  // than num_bins: configs of adapted layers have both.
  explicit DiscretizationLayer(Options options);

  // Boundaries so that each of num_bins bins gets the same share of the values, by a
  // QuantileSummary of each batch: exact up to 1 / epsilon values, near it beyond. Values as
  // float32; if they are fewer than num_bins, so are the bins. RuntimeError without num_bins;
  // ValueError for no data or a NaN.
  void adapt(const TensorLike& data);
  void adapt(const data::Dataset& batches);
  const std::vector<double>& bin_boundaries() const { return boundaries_; }
  Config get_config() const override;

 private:
  // RuntimeError before boundaries are known.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor bins(const Tensor& x) const;
  QuantileSummary empty_summary() const;
  void add(const Tensor& x, QuantileSummary& summary) const;
  void take(const QuantileSummary& summary);

  const Options options_;
  const OutputMode mode_;
  bool has_boundaries_ = false;
  std::vector<double> boundaries_;
};

namespace layers {
using Discretization = LayerHandle<DiscretizationLayer>;
}

}  // namespace keel
