// DotInteraction: dot products of all pairs of features (keras_rs.layers.DotInteraction).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of DotInteractionLayer.
struct DotInteractionOptions {
  bool self_interaction = false;  // include the product of each feature with itself
  bool skip_gather = false;       // return the whole matrix, with zeros above the diagonal
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("self_interaction", self.self_interaction);
    field("skip_gather", self.skip_gather);
  }
};

// Computes the products x_i . x_j of the pairs i > j (i >= j with self_interaction) in the order
// (1,0), (2,0), (2,1), ... of DLRM (Naumov et al. 2019). Input: a list of n tensors [batch, dim],
// or one tensor [batch, n, dim]. Output: [batch, pairs]. With skip_gather, the output is [batch, n
// * n], the matrix of products in row-major order with zeros where there is no pair.
class DotInteractionLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "DotInteraction";
  using Options = DotInteractionOptions;
  explicit DotInteractionLayer(Options options)
      : Layer(kClassName, options), options_(std::move(options)) {}
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }
  const Options& options() const { return options_; }

 private:
  // Throws ValueError for shapes other than the above.
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using DotInteraction = LayerHandle<DotInteractionLayer>;
}  // namespace layers

}  // namespace keel
