// BruteForceRetrieval: finds the best candidates for a query by scoring all of them
// (keras_rs.layers.BruteForceRetrieval).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of BruteForceRetrieval.
struct BruteForceRetrievalOptions {
  int64_t k = 10;             // number of candidates per query, > 0
  bool return_scores = true;  // return (scores, identifiers) instead of identifiers only
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("k", self.k);
    field("return_scores", self.return_scores);
  }
};

// Returns the k candidates whose embeddings have the greatest dot products with a query, in
// descending order; among equal scores the first candidate wins. NaN scores count as minus
// infinity. Queries are [..., dim], floating; scores are float32 [..., k], identifiers [..., k].
// There is no gradient.
//
// Products are computed for blocks of candidates, and only the best k are kept, so memory does not
// grow with queries * candidates. Results are bitwise equal for any number of worker threads.
//
// The candidates are not weights, so configs and files do not contain them: set them again after
// loading and whenever they change, but not while a call runs.
class BruteForceRetrievalLayer final : public OptionsLayer<BruteForceRetrievalOptions, Layer> {
 public:
  static constexpr char kClassName[] = "BruteForceRetrieval";
  explicit BruteForceRetrievalLayer(Options options);  // throws ValueError unless k > 0

  // Replaces the candidates, possibly by another number of them. `candidate_embeddings` are
  // [candidates, dim], floating. `candidate_ids` are [candidates] of any dtype; if empty, the
  // identifiers are the positions, int32. Throws ValueError for other shapes and for fewer than k
  // candidates, and TypeError for embeddings of another dtype.
  void update_candidates(const Tensor& candidate_embeddings, const Tensor& candidate_ids = {});
  const Tensor& candidate_embeddings() const { return embeddings_; }  // empty if not set
  const Tensor& candidate_ids() const { return ids_; }                // empty if positions are used

 private:
  // Throws RuntimeError without candidates, and ValueError for queries of another dimension.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensors result(Tensor scores, Tensor ids) const;
  void check_query(const Tensor& query) const;

  Tensor embeddings_, ids_;
};

namespace layers {
using BruteForceRetrieval = LayerHandle<BruteForceRetrievalLayer>;
}

}  // namespace keel
