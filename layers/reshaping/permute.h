// Permute: another order of the dimensions of each sample (keras.layers.Permute).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

struct PermuteOptions {
  std::vector<int> dims = {};  // required: the input's dimensions, from 1, in their new order
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("dims", self.dims);
  }
};

// Input [batch, ...]; dimension i of the output, from 1, is dimension dims[i - 1] of the input:
// {2, 1} gives [batch, features, steps] of [batch, steps, features]. Any dtype.
class PermuteLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Permute";
  using Options = PermuteOptions;
  // ValueError unless dims are 1 ... n in some order.
  explicit PermuteLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError unless the input has n dimensions beside the batch.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Permute = LayerHandle<PermuteLayer>;
}

}  // namespace keel
