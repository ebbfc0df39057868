// CategoryEncoding: encodes categories as vectors (keras.layers.CategoryEncoding).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/values.h>

namespace keel {

// Options of CategoryEncoding.
struct CategoryEncodingOptions {
  int64_t num_tokens = 0;                 // number of categories; required, > 0
  std::string output_mode = "multi_hot";  // or "one_hot", "count"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_tokens", self.num_tokens);
    field("output_mode", self.output_mode);
  }
};

// Options of a call of CategoryEncoding.
struct CategoryEncodingCallOptions {
  std::optional<bool> training = {};
  // For "count": the weight of each category, with the shape and layout of the inputs; unset: ones.
  std::optional<TensorLike> count_weights = {};
};

// Returns the encodings of encode_categories() in the layer's dtype. Inputs are integers in [0,
// num_tokens), or floats with integer values, in any layout. A call without options also accepts
// the pair (categories, count weights). There is no gradient. Throws ValueError for a category out
// of range, and for weights if the mode is not "count".
class CategoryEncodingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "CategoryEncoding";
  using Options = CategoryEncodingOptions;
  using CallOptions = CategoryEncodingCallOptions;
  // Throws ValueError unless num_tokens > 0, and for an unknown output_mode.
  explicit CategoryEncodingLayer(Options options);

  // Encodes `inputs`, with options.count_weights if set.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensor operator()(const Tensor& input, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor checked(const Tensor& categories) const;

  const Options options_;
  const OutputMode mode_;
};

namespace layers {
using CategoryEncoding = LayerHandle<CategoryEncodingLayer>;
}

}  // namespace keel
