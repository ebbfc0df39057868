// CategoryEncoding: categories as vectors (keras.layers.CategoryEncoding).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/values.h>

namespace keel {

struct CategoryEncodingOptions {
  int64_t num_tokens = 0;                 // required: how many categories there are, > 0
  std::string output_mode = "multi_hot";  // or one_hot, count
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_tokens", self.num_tokens);
    field("output_mode", self.output_mode);
  }
};

struct CategoryEncodingCallOptions {
  std::optional<bool> training = {};
  // For "count": a weight for each category, of the inputs' shape and layout; unset: ones.
  std::optional<TensorLike> count_weights = {};
};

// The encodings of encode_categories, of the layer's dtype. Input: integers in [0, num_tokens), or
// floats that hold such, of any layout. Without options a call takes the pair (categories, count
// weights) too. There is no gradient. ValueError for a category out of range, and for weights
// with another mode.
class CategoryEncodingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "CategoryEncoding";
  using Options = CategoryEncodingOptions;
  using CallOptions = CategoryEncodingCallOptions;
  // ValueError unless num_tokens > 0 and for another output_mode.
  explicit CategoryEncodingLayer(Options options);

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
