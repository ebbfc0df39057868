// Discretization and CategoryEncoding: map values to categories. See also hashing.h, lookup.h and
// text_vectorization.h.
//
// The option output_mode selects the form of the categories, which are counted from 0:
//   "int"        int64, with the shape and row splits of the input
//   "one_hot"    dense [..., 1] or [...] -> float32 [..., depth], 1 at the category
//   "multi_hot"  [..., n] -> float32 [..., depth], 1 at each of the n categories; also for a ragged
//                or sparse matrix with one row per sample
//   "count"      like "multi_hot" with the number of occurrences
// Encodings ignore negative categories. "one_hot" requires dense inputs. There is no gradient.
//
// The option `sparse` makes encodings, not "int", SparseTensors of the same shape and values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/hashing.h>

namespace keel {

namespace data {
class Dataset;
}
class QuantileSummary;

// Options of Discretization.
struct DiscretizationOptions {
  std::optional<std::vector<double>> bin_boundaries = {};  // ascending
  std::optional<int64_t> num_bins = {};                    // adapt() computes the boundaries
  double epsilon = 0.01;            // for adapt(): it keeps about 1 / epsilon values, in (0, 1]
  std::string output_mode = "int";  // or "one_hot", "multi_hot", "count"
  bool sparse = false;              // return encodings as SparseTensors
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("bin_boundaries", self.bin_boundaries);
    field("num_bins", self.num_bins);
    field("epsilon", self.epsilon);
    field("output_mode", self.output_mode);
    field("sparse", self.sparse);
  }
};

// Maps numbers to bins (keras.layers.Discretization): the category is the number of boundaries that
// are not greater than x, and the last bin for NaN. {0, 1} gives the bins (-inf, 0), [0, 1), [1,
// inf). Boundaries are compared as float32 numbers: the boundary 0.1 equals a float 0.1. Input has
// any shape, layout and numeric dtype.
class DiscretizationLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Discretization";
  using Options = DiscretizationOptions;
  // Throws ValueError
  // - unless ascending boundaries or num_bins > 1 are given;
  // - if both are given and the boundaries make more than num_bins bins;
  // - for `sparse` with output_mode "int".
  explicit DiscretizationLayer(Options options);

  // Sets the boundaries so that each of num_bins bins gets the same share of the values. The result
  // is exact for up to 1 / epsilon values and approximate for more. Values are converted to
  // float32. If there are fewer values than num_bins, there are fewer bins. Throws RuntimeError if
  // num_bins is unset, and ValueError for empty data or a NaN. The second form reads the first
  // `steps` batches, or all of them.
  void adapt(const TensorLike& data);
  void adapt(const data::Dataset& batches, std::optional<int64_t> steps = {});
  const std::vector<double>& bin_boundaries() const { return boundaries_; }  // empty before adapt()
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

// Options of CategoryEncoding.
struct CategoryEncodingOptions {
  int64_t num_tokens = 0;                 // number of categories; required, > 0
  std::string output_mode = "multi_hot";  // or "one_hot", "count"
  bool sparse = false;                    // return SparseTensors
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_tokens", self.num_tokens);
    field("output_mode", self.output_mode);
    field("sparse", self.sparse);
  }
};

// Options of a call of CategoryEncoding.
struct CategoryEncodingCallOptions {
  std::optional<bool> training = {};  // has no effect on this layer
  // For "count": the weight of each category, with the shape and layout of the inputs; unset: ones.
  std::optional<TensorLike> count_weights = {};
};

// Encodes categories as vectors in the layer's dtype (keras.layers.CategoryEncoding). Inputs are
// integers in [0, num_tokens), also as floats, in any layout. A call without options also accepts
// the pair (categories, count weights). Throws ValueError for a category out of range, and for
// weights if the mode is not "count".
class CategoryEncodingLayer final : public OptionsLayer<CategoryEncodingOptions, Layer> {
 public:
  static constexpr char kClassName[] = "CategoryEncoding";
  using CallOptions = CategoryEncodingCallOptions;
  // Throws ValueError unless num_tokens > 0, and for an unknown output_mode.
  explicit CategoryEncodingLayer(Options options);

  // Encodes `inputs`, with options.count_weights if set. The second form throws TypeError if the
  // result is sparse.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensor operator()(const Tensor& input, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor checked(const Tensor& categories) const;

  const OutputMode mode_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Discretization = LayerHandle<DiscretizationLayer>;
using CategoryEncoding = LayerHandle<CategoryEncodingLayer>;
}  // namespace layers

}  // namespace keel
