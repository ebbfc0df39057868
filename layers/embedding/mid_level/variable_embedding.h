// VariableEmbedding: what TPUEmbeddingForServing and TPUEmbeddingV0 have in common: tables that are
// ordinary trainable variables, looked up without an engine.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/tables/host_lookup.h>

namespace keel::tpu {

class VariableEmbedding : public EmbeddingBase {
 public:
  // Makes the tables, trainable, and the slots of their optimizers, which are not. Does nothing the
  // second time.
  void build();

  // Builds if that has not been done. Packed like feature_config; differentiable with respect to
  // the tables. Errors as host_embedding_lookup says.
  Tensors embedding_lookup(const Tensors& features, const FeatureWeights& weights = {});
  Tensors operator()(const Tensors& features, const FeatureWeights& weights = {}) {
    return embedding_lookup(features, weights);
  }

  // Once built: the variables of a table's slots, by name. ValueError for a table that is not
  // among these.
  const std::map<std::string, Variable>& slots(const Table& table) const;
  // Odd ids that lookups have left out or replaced so far (FeatureConfig::id_policy), by the
  // feature's path.
  std::vector<std::pair<std::string, IdCounts>> id_counts() const;

 protected:
  VariableEmbedding(const char* caller, const Nest<FeatureConfig>& feature_config,
                    const EmbeddingOptimizer& optimizer, LookupRules rules);

 private:
  void warn_once(const Tensors& features);

  const LookupRules rules_;
  InvalidIdCounter tally_;
  std::atomic<bool> warned_ = false;
};

}  // namespace keel::tpu
