// Permute: permutes the dimensions of each sample (keras.layers.Permute).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// Options of Permute.
struct PermuteOptions {
  std::vector<int> dims = {};  // required: input dimensions, counted from 1, in their new order
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("dims", self.dims);
  }
};

// Input [batch, ...]; dimension i of the output, counted from 1, is dimension dims[i - 1] of the
// input: {2, 1} maps [batch, steps, features] to [batch, features, steps]. Accepts any dtype.
class PermuteLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Permute";
  using Options = PermuteOptions;
  // Throws ValueError unless dims is a permutation of 1 ... n.
  explicit PermuteLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the input has n dimensions in addition to the batch.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Permute = LayerHandle<PermuteLayer>;
}

}  // namespace keel
