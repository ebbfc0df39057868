// Reshape: changes the shape of each sample (keras.layers.Reshape).
#pragma once

#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// Options of Reshape.
struct ReshapeOptions {
  std::vector<int64_t> target_shape = {};  // without the batch; one dimension may be -1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("target_shape", self.target_shape);
  }
};

// Input [batch, dims...]; output [batch, target_shape...], where -1 is replaced by the remaining
// size. Accepts any dtype. Throws ValueError if a sample has another number of values.
class ReshapeLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Reshape";
  using Options = ReshapeOptions;
  // Throws ValueError for several dimensions -1, and for other negative dimensions.
  explicit ReshapeLayer(Options options);
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Reshape = LayerHandle<ReshapeLayer>;
}

}  // namespace keel
