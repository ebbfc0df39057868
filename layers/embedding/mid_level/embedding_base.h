// EmbeddingBase: common base of TPUEmbedding, TPUEmbeddingForServing and TPUEmbeddingV0. Holds the
// features, their tables, the host variables of the tables, and their checkpoint entries.
// TPUEmbeddingForServing: embedding tables on the host, for serving and for training without an
// accelerator. TPUEmbeddingV0: embedding tables under a TPUStrategy without an embedding engine.
// Both look up ordinary trainable variables (tf.tpu.experimental.embedding).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/layers/embedding/tables/dynamic_table.h>
#include <keel/layers/embedding/tables/lookup_statistics.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {
class HostTables;
class TrackedTables;
enum class LookupRules;
}  // namespace keel

namespace keel::tpu {

// Each table with its variable, in table order.
using EmbeddingTables = std::vector<std::pair<Table, Variable>>;

// A feature_config with its tables as host variables.
class EmbeddingBase {
 public:
  virtual ~EmbeddingBase() = default;
  EmbeddingBase(const EmbeddingBase&) = delete;
  EmbeddingBase& operator=(const EmbeddingBase&) = delete;

  // Returns the features, with the user's tables.
  const Nest<FeatureConfig>& feature_config() const { return feature_config_; }
  // Returns the tables of the features, in order of first use.
  const TableSet& table_set() const;
  // Returns true once the tables exist.
  virtual bool built() const;

  // Returns the tables' variables. Creates them at the first call.
  virtual EmbeddingTables embedding_tables();

  // Returns a handle for calls between steps to a table with dynamic ids. Throws ValueError for a
  // table with a vocabulary or of another object, and RuntimeError before the tables exist.
  DynamicTable dynamic_table(const Table& table) const;

  // Counts the ids of later lookups if `collect` is true, for lookup_statistics(); the default is
  // false. Counting costs a sort of each batch's ids and changes no result. Call it outside of
  // steps. Throws RuntimeError for a TPUEmbedding in host mode, which has no lookups.
  void set_collect_statistics(bool collect);
  // Returns the counts of these lookups by table name. Call it outside of steps. With an engine,
  // they are those of all processes, and the call is collective over them. Throws RuntimeError
  // unless statistics are collected.
  std::map<std::string, LookupStatistics> lookup_statistics() const;

  // Returns the tables for CheckpointItems::embeddings.
  virtual std::shared_ptr<TrackedTables> tracked() const;
  // Converts the object to what CheckpointItems::embeddings takes.
  operator std::shared_ptr<TrackedTables>() const { return tracked(); }  // NOLINT: implicit

 protected:
  // Writes optimizers and names to the user's tables; see adopt_tables. Throws ValueError, naming
  // `caller`, unless each table has an embedding optimizer, its own or `optimizer`. If
  // `optimizer_may_be_unset`, a table may have none. After an error nothing has been written.
  EmbeddingBase(const char* caller, const Nest<FeatureConfig>& feature_config,
                const EmbeddingOptimizer& optimizer, bool optimizer_may_be_unset);

  // Returns the access to a built table with dynamic ids.
  virtual DynamicTable::Access dynamic_access(int table) const;
  // Turns the counts on or off, and returns those of a table.
  virtual void count_lookups(bool count) = 0;
  virtual LookupStatistics statistics(size_t table) const = 0;
  HostTables& host_tables() const { return *host_tables_; }  // the variables of the tables

 private:
  const Nest<FeatureConfig> feature_config_;
  const std::shared_ptr<HostTables> host_tables_;
  bool collects_statistics_ = false;
};

// Looks up features in host variables.
class VariableEmbedding : public EmbeddingBase {
 public:
  ~VariableEmbedding() override;

  // Creates the tables, which are trainable, and the slots of their optimizers, which are not.
  // Later calls do nothing.
  void build();

  // Looks up one batch; builds the object if necessary. The result is packed like feature_config
  // and differentiable with respect to the tables. Throws TypeError or ValueError for another
  // structure. Throws ValueError, naming the feature, for ids outside the table; for weights of
  // dense ids, of sequences, or of another layout than the ids; and for dense ids of a sequence
  // feature.
  Tensors embedding_lookup(const Tensors& features, const FeatureWeights& weights = {});
  // Same as embedding_lookup().
  Tensors operator()(const Tensors& features, const FeatureWeights& weights = {}) {
    return embedding_lookup(features, weights);
  }

  // Returns the variables of a table's slots by name. Throws ValueError for a table that is not one
  // of this object's, and RuntimeError before build.
  const std::map<std::string, Variable>& slots(const Table& table) const;
  // Returns the counts of dropped and replaced invalid ids, by feature path
  // (FeatureConfig::id_policy).
  std::vector<std::pair<std::string, IdCounts>> id_counts() const;

 protected:
  // Takes the arguments of EmbeddingBase. `rules` selects how invalid ids are treated.
  VariableEmbedding(const char* caller, const Nest<FeatureConfig>& feature_config,
                    const EmbeddingOptimizer& optimizer, LookupRules rules);
  void count_lookups(bool count) override;
  LookupStatistics statistics(size_t table) const override;

 private:
  struct Lookups;  // the rules, counts and warnings of lookups
  void warn_once(const Tensors& features);

  const std::unique_ptr<Lookups> lookups_;
};

// Looks up `inputs` in `tables` like TPUEmbeddingForServing::embedding_lookup. The result depends
// only on the arguments and is differentiable with respect to the tables.
// For each feature with a table of D columns:
//   dense [shape...]     a gather, [shape..., D]; the combiner is ignored
//   sparse [..., n]      each row of ids combined, [..., D]. If the feature validates, or the rank
//                        is above 2, negative ids are dropped, and so are weights that are not
//                        positive unless the combiner is sum
//   ragged [rows, (n)]   each row combined, [rows, D], or [output_shape..., D]
//   a sequence feature   [rows, max_sequence_length, D]
// Empty rows, and rows whose weights sum to 0, give zeros.
// Throws ValueError, naming the feature, for a table that is not in `tables`; for weights of dense
// ids, of another layout than the ids or of a sequence feature; for dense ids of a sequence
// feature; and for ids that are not integers or are outside the table. Throws TypeError or
// ValueError for another structure.
Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const EmbeddingTables& tables,
                                 const Nest<FeatureConfig>& feature_config);
// Looks up `inputs` in the given values of tables, for example those that a layer's
// embedding_tables() returns.
Tensors serving_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                 const std::vector<std::pair<Table, Tensor>>& tables,
                                 const Nest<FeatureConfig>& feature_config);

// The former name of serving_embedding_lookup.
inline Tensors cpu_embedding_lookup(const Tensors& inputs, const FeatureWeights& weights,
                                    const EmbeddingTables& tables,
                                    const Nest<FeatureConfig>& feature_config) {
  return serving_embedding_lookup(inputs, weights, tables, feature_config);
}

// Embedding tables as trainable host variables.
class TPUEmbeddingForServing final : public VariableEmbedding {
 public:
  // `optimizer` applies to tables without their own and determines which slots exist. Unset: no
  // slots. Names and optimizers are written to the user's tables.
  // Throws RuntimeError under a TPUStrategy. Throws ValueError for two tables with the same name,
  // and for an optimizer that is not an embedding optimizer.
  explicit TPUEmbeddingForServing(const Nest<FeatureConfig>& feature_config,
                                  const EmbeddingOptimizer& optimizer = {});
};

// Every replica reads the same tables, which are ordinary trainable variables. Nothing is queued,
// delayed or sharded, and one strategy may have several of these objects. Meant for small tables.
//   auto gradients = tape.gradient(loss, variables);   // of embedding.embedding_tables()
//   sgd->apply_gradients(gradients, variables);        // in each replica; sums over replicas
//
// Lookups are those of an engine, except that dense ids [B, 1] give [B, 1, dim]. Invalid ids are
// errors unless the feature's id_policy allows them, and weights are used unchanged, whatever their
// sign.
// Throws ValueError, naming the feature, for weights of dense ids, of another layout than the ids
// or of a sequence feature; for dense ids, or sparse ids of another rank than 2, of a sequence
// feature; and for ragged ids of another rank than 2 or that do not fit output_shape.
class TPUEmbeddingV0 final : public VariableEmbedding {
 public:
  // Takes the arguments of TPUEmbeddingForServing. Throws RuntimeError unless called under a
  // TPUStrategy.
  explicit TPUEmbeddingV0(const Nest<FeatureConfig>& feature_config,
                          const EmbeddingOptimizer& optimizer = {});
};

}  // namespace keel::tpu
