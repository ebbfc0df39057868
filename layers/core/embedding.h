// Embedding: looks up rows of a table by id (keras.layers.Embedding).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/layer.h>

namespace keel {

class DynamicEmbeddings;

// The options of EmbeddingLayer.
struct EmbeddingOptions {
  int64_t input_dim = 0;   // required, > 0: number of rows; 0 if `dynamic` is set
  int64_t output_dim = 0;  // required, > 0: number of columns
  // The default draws uniformly from [-0.05, 0.05). int8 tables start with zeros.
  Initializer embeddings_initializer = "uniform";
  Regularizer embeddings_regularizer = {};  // penalty on embeddings; unset: none
  Regularizer activity_regularizer = {};    // applied to the output
  Constraint embeddings_constraint = {};    // applied to embeddings after each step; unset: none
  bool mask_zero = false;                   // treat id 0 as padding: the output's mask is ids != 0
  // Set: the table maps any 64-bit integers or strings to rows and needs no vocabulary. Without it,
  // ids are row numbers.
  std::optional<DynamicVocabulary> dynamic = {};
  static constexpr bool kQuantizes = true;  // dtype may request int8; see EmbeddingLayer
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("input_dim", self.input_dim);
    field("output_dim", self.output_dim);
    field("embeddings_initializer", self.embeddings_initializer);
    field("embeddings_regularizer", self.embeddings_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("embeddings_constraint", self.embeddings_constraint);
    field("mask_zero", self.mask_zero);
    field("dynamic", self.dynamic);
  }
};

// Computes embeddings[ids]. Input: ids of any shape, int32 or int64, or floats that hold integers.
// Output: [ids..., output_dim]. The gradient of the table is IndexedSlices, so rows that are not
// read have no cost, unless a regularizer or constraint reads the whole table. Throws ValueError
// for an id outside of [0, input_dim).
//
// A table can be quantized to int8 with one scale per row, with Keras's algorithm
// (framework/internal/quantizers.h). It then takes a quarter of the memory and file size. A row is
// codes / scale, and the table is not trainable. Such a layer is the result of quantize("int8"), or
// of the dtype policy "int8_from_float32", which files of quantized layers contain. With the
// policy, no float table is ever allocated.
//
// With `dynamic`, ids are strings or int32 and int64 numbers, as its key type says (else
// TypeError), and every id is valid. dynamic_table() gives access to the rows. Lookups under a tape
// count as training lookups; each apply_gradients() of the optimizer is an update.
class EmbeddingLayer final : public TensorLayer, public DynamicTableOwner {
 public:
  static constexpr char kClassName[] = "Embedding";
  using Options = EmbeddingOptions;
  // Throws ValueError unless both dimensions are positive. With `dynamic`, input_dim must be 0;
  // a regularizer or constraint of the table, mask_zero and a dtype other than float32 are
  // ValueErrors, and the conditions of check(DynamicVocabulary) and check_row_initializers() apply.
  explicit EmbeddingLayer(Options options);

  // Returns a handle for calls between steps to a table with dynamic ids. Throws ValueError for a
  // table with a vocabulary, and RuntimeError before the layer is built.
  DynamicTable dynamic_table() const;
  std::vector<std::pair<std::string, DynamicTable>> dynamic_tables() const override;
  std::vector<std::string> training_notices() const override;

  const Variable& embeddings() const { return embeddings_; }  // empty until built
  // The scales of an int8 table, float32 [input_dim]; empty for other tables.
  const Variable& embeddings_scale() const { return scale_; }
  // Replaces the float32 table by an int8 one: two variables with Keras's names, neither of them
  // trainable. The dtype policy changes accordingly. Models that contain the layer remain usable;
  // compile a model again before you train it further.
  // Throws ValueError for a mode other than "int8", if the layer is not built or already quantized,
  // for a table of another dtype or with dynamic ids, and for rows that are not finite.
  void quantize(const std::string& mode);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  // Setting the scales throws ValueError unless they are positive and finite.
  std::vector<StateEntry> state_entries() const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override;

 private:
  void make_dynamic();
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& ids, const CallContext& context) override;
  void add_quantized(Tensor codes, Tensor scales);

  Options options_;
  Variable embeddings_, scale_;
  std::shared_ptr<DynamicEmbeddings> dynamic_ = nullptr;  // set for a table with dynamic ids
};

namespace layers {
// A handle to the layer, under Keras's name.
using Embedding = LayerHandle<EmbeddingLayer>;
}  // namespace layers

}  // namespace keel
