// Embedding: rows of a table by id (keras.layers.Embedding).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct EmbeddingOptions {
  int64_t input_dim = 0;                           // required: rows, > 0
  int64_t output_dim = 0;                          // required: columns, > 0
  Initializer embeddings_initializer = "uniform";  // in [-0.05, 0.05); of int8 tables zeros
  Regularizer embeddings_regularizer = {};
  Regularizer activity_regularizer = {};  // of the result
  Constraint embeddings_constraint = {};
  bool mask_zero = false;  // id 0 is padding: the result's mask is ids != 0
  static constexpr bool kQuantizes = true;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("input_dim", self.input_dim);
    field("output_dim", self.output_dim);
    field("embeddings_initializer", self.embeddings_initializer);
    field("embeddings_regularizer", self.embeddings_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("embeddings_constraint", self.embeddings_constraint);
    field("mask_zero", self.mask_zero);
  }
};

// embeddings[ids]. Input ids of any shape, int32 or int64, or floats that hold such; output
// [ids..., output_dim]. The gradient of the table is IndexedSlices: rows not read cost nothing,
// unless a regularizer or constraint reads them all.
// ValueError for an id outside [0, input_dim).
//
// A table may be in int8 with a scale for each row, as Keras quantizes it
// (framework/internal/quantizers.h): a quarter of the memory and of the files. A row is codes /
// scale; nothing trains it. Such a layer comes of quantize("int8"), and of the policy
// "int8_from_float32", which files of it have: it then has no table of floats at any time.
class EmbeddingLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Embedding";
  using Options = EmbeddingOptions;
  // ValueError unless both dimensions are positive.
  explicit EmbeddingLayer(Options options);

  const Variable& embeddings() const { return embeddings_; }  // empty until built
  // float32 [input_dim], of a table in int8; empty otherwise.
  const Variable& embeddings_scale() const { return scale_; }
  // Puts the int8 table in the place of the float32 one: two variables under Keras's names, neither
  // trainable. The policy says so from then on. Models that have the layer go on with it; one that
  // is to be trained further is compiled once more.
  // ValueError for another mode, before the layer is built, for one that is quantized already, for
  // a table of another dtype and for rows that are not finite.
  void quantize(const std::string& mode);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  // Scales are positive and finite (ValueError for others).
  std::vector<StateEntry> state_entries() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& ids, const CallContext& context) override;
  void add_quantized(Tensor codes, Tensor scales);

  Options options_;
  Variable embeddings_, scale_;
};

namespace layers {
using Embedding = LayerHandle<EmbeddingLayer>;
}

}  // namespace keel
