// Discretization: maps numbers to bins (keras.layers.Discretization).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/quantile_summary.h>
#include <keel/layers/preprocessing/values.h>

namespace keel {

// Options of Discretization.
struct DiscretizationOptions {
  std::optional<std::vector<double>> bin_boundaries = {};  // ascending boundaries
  std::optional<int64_t> num_bins = {};  // alternative: adapt() computes boundaries
  double epsilon = 0.01;            // for adapt(): it keeps about 1 / epsilon values, in (0, 1]
  std::string output_mode = "int";  // or "one_hot", "multi_hot", "count"
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

// Returns the number of boundaries that are not greater than x: {0, 1} gives the bins (-inf, 0),
// [0, 1), [1, inf). NaN is in the last bin. Input has any shape, layout and numeric dtype. Output
// is int64 with the same shape and row splits, or float32 encodings (encode_categories). There is
// no gradient.
class DiscretizationLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Discretization";
  using Options = DiscretizationOptions;
  // Throws ValueError unless ascending boundaries or num_bins > 1 are given. Both may be given, as
  // in configs of adapted layers; then throws ValueError if the boundaries make more than num_bins
  // bins.
  explicit DiscretizationLayer(Options options);

  // Sets the boundaries so that each of num_bins bins gets the same share of the values. Adds each
  // batch to a QuantileSummary; the result is exact for up to 1 / epsilon values and approximate
  // for more. Values are converted to float32. If there are fewer values than num_bins, there are
  // fewer bins. Throws RuntimeError if num_bins is unset, and ValueError for empty data or a NaN.
  void adapt(const TensorLike& data);
  void adapt(const data::Dataset& batches);
  const std::vector<double>& bin_boundaries() const { return boundaries_; }
  Config get_config() const override;

 private:
  // Throws RuntimeError if there are no boundaries yet.
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
