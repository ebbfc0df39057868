// EmbedReduce: looks up table rows by id and combines the rows of each sample
// (keras_rs.layers.EmbedReduce).
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

// Options of EmbedReduceLayer.
struct EmbedReduceOptions {
  int64_t input_dim = 0;   // required: number of rows, > 0; 0 with `dynamic`
  int64_t output_dim = 0;  // required: number of columns, > 0
  Initializer embeddings_initializer = "uniform";  // the default draws from [-0.05, 0.05)
  Regularizer embeddings_regularizer = {};         // regularizer of the table
  Regularizer activity_regularizer = {};           // applied to the output
  Constraint embeddings_constraint = {};           // constraint of the table
  bool mask_zero = false;                          // not supported
  std::string combiner = "mean";                   // "mean", "sum" or "sqrtn"
  // Set: the table maps any 64-bit integers or strings to rows and needs no vocabulary.
  std::optional<DynamicVocabulary> dynamic = {};
  std::string name = {};   // name of the layer; empty: chosen from its class
  bool trainable = true;   // false: its variables are not trained
  DTypePolicy dtype = {};  // dtype of the computation and of the variables

  // Calls field(name, member) for each member.
  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("input_dim", self.input_dim);
    field("output_dim", self.output_dim);
    field("embeddings_initializer", self.embeddings_initializer);
    field("embeddings_regularizer", self.embeddings_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("embeddings_constraint", self.embeddings_constraint);
    field("mask_zero", self.mask_zero);
    field("combiner", self.combiner);
    field("dynamic", self.dynamic);
  }
};

// Options of one call of EmbedReduceLayer.
struct EmbedReduceCallOptions {
  std::optional<bool> training = {};       // unset: that of the surrounding call
  std::optional<TensorLike> weights = {};  // unset: ones
};

// Looks up ids and combines the rows of each sample. Ids are int32, int64 or floats with integral
// values. The output has shape [rows, output_dim]:
//   dense [rows]                     the row of each id
//   dense [rows, n], sparse, ragged  the combined rows of each sample
// With e the embedding rows of a sample's ids and w their weights, the combiners are:
//   sum    sum of w e
//   mean   sum of w e / sum of w
//   sqrtn  sum of w e / sqrt(sum of w^2)
// A sample without ids, or with a divisor of 0, gives zeros. For ids of shape [rows], weights only
// affect sum; mean and sqrtn return the row unchanged.
//
// The shape of dense weights must be a prefix of [ids..., output_dim]: one weight for each element,
// id or row, or one scalar weight. Weights of sparse and ragged ids have the ids' positions, or are
// dense with shape [] or [rows]. A call without options also accepts the pair (ids, weights).
//
// Gradients flow to the table, as IndexedSlices, and to weights that have the layout of the ids,
// those of sparse and ragged ids with float32 tables only. The gradients of a sample whose divisor
// is 0 are 0. A regularizer or constraint of the table reads the whole
// table.
//
// Throws ValueError for ids that are not numbers or are outside [0, input_dim), for weights of
// another shape, and for ids of rank 3 or more. Throws TypeError for weights of another layout than
// the ids.
//
// With `dynamic`, ids are strings or int32 and int64 numbers, as its key type says (else
// TypeError), and every id is valid.
class EmbedReduceLayer : public Layer, public DynamicTableOwner {
 public:
  static constexpr char kClassName[] = "EmbedReduce";  // the name of the class in configs
  using Options = EmbedReduceOptions;                  // arguments of the constructor
  using CallOptions = EmbedReduceCallOptions;          // arguments of a call
  // Throws ValueError unless both dimensions are positive and the combiner is "mean", "sum" or
  // "sqrtn". With `dynamic`, input_dim must be 0, the conditions of Embedding apply, and a
  // regularizer or constraint of the table is a ValueError. Throws NotImplementedError for
  // mask_zero: pass lists of ids as ragged tensors instead.
  explicit EmbedReduceLayer(Options options);

  // Looks up `ids`, weighted by options.weights if set.
  Tensors operator()(const Tensors& ids, const CallOptions& options = {});
  Tensor operator()(const Tensor& ids, const CallOptions& options = {});  // Looks up dense ids.
  // Repeats a recorded call; `inputs` may be the pair (ids, weights).
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  const Options& options() const { return options_; }  // Returns the arguments of the constructor.
  const Variable& embeddings() const { return embeddings_; }  // empty before the layer is built
  // Returns a handle for calls between steps to a table with dynamic ids. Throws ValueError for a
  // table with a vocabulary, and RuntimeError before the layer is built.
  DynamicTable dynamic_table() const;
  std::vector<std::pair<std::string, DynamicTable>> dynamic_tables() const override;
  std::vector<std::string> training_notices() const override;  // reports the table
  std::vector<StateEntry> state_entries() const override;      // Returns the table.
  Config get_config() const override;                          // Returns the options.
  // Adds the lookup of a float32 table to a serving plan.
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  void make_dynamic();
  Tensor call_dynamic(const TensorLike& ids, const std::optional<TensorLike>& weights) const;
  Tensor reduce_weighted(const Tensor& embedded, const Tensor& weights) const;

  const Options options_;
  Variable embeddings_;
  std::shared_ptr<DynamicEmbeddings> dynamic_ = nullptr;  // set for a table with dynamic ids
};

namespace layers {
using EmbedReduce = LayerHandle<EmbedReduceLayer>;  // A handle to the layer, under keras_rs's name.
}

}  // namespace keel
