// PositionWeights: trained weights of the positions of a bag or sequence of ids.
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of PositionWeightsLayer.
struct PositionWeightsOptions {
  int64_t max_length = 0;            // required: the number of positions that have weights, > 0
  Initializer initializer = "ones";  // initializer of the weights
  Regularizer regularizer = {};      // regularizer of the weights
  std::string name = {};             // name of the layer; empty: chosen from its class
  bool trainable = true;             // false: its variables are not trained
  DTypePolicy dtype = {};            // dtype of the computation and of the variables

  // Calls field(name, member) for each member.
  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("max_length", self.max_length);
    field("initializer", self.initializer);
    field("regularizer", self.regularizer);
  }
};

// Gives each id of a sparse or ragged feature of rank 2 the weight of its position in its row, for
// the `weights` of an embedding layer (the position-weighted features of TorchRec):
//
//   const layers::PositionWeights positions({.max_length = 50});
//   embedding(ids, {.weights = positions(ids)});
//
// The output has the layout and positions of the input, and float32 values. The position of a
// sparse entry is its column. Positions from max_length have weight 0: combiners "sum" and "mean"
// then ignore these ids. Gradients flow to the weights. Throws ValueError for other layouts and
// ranks.
class PositionWeightsLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "PositionWeights";  // the name of the class in configs
  using Options = PositionWeightsOptions;                  // arguments of the constructor
  // Throws ValueError unless max_length is positive.
  explicit PositionWeightsLayer(Options options);

  const Variable& position_weights() const { return weights_; }       // [max_length], once built
  Config get_config() const override { return to_config(options_); }  // Returns the options.

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
  Variable weights_;
};

namespace layers {
using PositionWeights = LayerHandle<PositionWeightsLayer>;  // A handle to the layer.
}

}  // namespace keel
