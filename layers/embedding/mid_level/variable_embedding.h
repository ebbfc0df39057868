// VariableEmbedding: common base of TPUEmbeddingForServing and TPUEmbeddingV0, whose tables are
// ordinary trainable variables that are looked up without an engine.
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/embedding/mid_level/embedding_base.h>
#include <keel/layers/embedding/tables/host_lookup.h>

namespace keel::tpu {

// Looks up features in host variables.
class VariableEmbedding : public EmbeddingBase {
 public:
  // Creates the tables, which are trainable, and the slots of their optimizers, which are not.
  // Later calls do nothing.
  void build();

  // Looks up one batch; builds the object if necessary. The result is packed like feature_config
  // and differentiable with respect to the tables. Throws under the conditions of
  // host_embedding_lookup.
  Tensors embedding_lookup(const Tensors& features, const FeatureWeights& weights = {});
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
  VariableEmbedding(const char* caller, const Nest<FeatureConfig>& feature_config,
                    const EmbeddingOptimizer& optimizer, LookupRules rules);

 private:
  void warn_once(const Tensors& features);

  const LookupRules rules_;
  InvalidIdCounter tally_;
  std::atomic<bool> warned_ = false;
};

}  // namespace keel::tpu
