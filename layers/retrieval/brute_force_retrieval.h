// BruteForceRetrieval: the best candidates for a query, found by scoring all of them
// (keras_rs.layers.BruteForceRetrieval).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct BruteForceRetrievalOptions {
  int64_t k = 10;             // candidates for a query, > 0
  bool return_scores = true;  // the result is (scores, identifiers), else identifiers alone
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("k", self.k);
    field("return_scores", self.return_scores);
  }
};

// The k candidates whose embeddings have the greatest dot products with a query, the best first and
// of equal ones the first; a product that is NaN counts as the least, minus infinity.
// Queries [..., dim], floating; scores float32 [..., k], identifiers [..., k]. There is no
// gradient. Products are made of blocks of candidates, of which the best k are kept: memory does
// not grow with queries * candidates. The same bits for any number of workers.
//
// Configs and files do not hold the candidates, which are no weights: give them again after
// loading, and whenever they change. Not while a call runs.
class BruteForceRetrievalLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "BruteForceRetrieval";
  using Options = BruteForceRetrievalOptions;
  explicit BruteForceRetrievalLayer(Options options);  // ValueError unless k is positive

  // Embeddings [candidates, dim], floating, and their identifiers, [candidates] of any dtype; the
  // positions, int32, if there are none. Replaces those before, of which there may have been
  // another number. ValueError for other shapes and for fewer than k candidates; TypeError for
  // embeddings of another dtype.
  void update_candidates(const Tensor& candidate_embeddings, const Tensor& candidate_ids = {});
  const Tensor& candidate_embeddings() const { return embeddings_; }  // empty before
  const Tensor& candidate_ids() const { return ids_; }                // empty for positions

  Config get_config() const override { return to_config(options_); }

 private:
  // RuntimeError without candidates; ValueError for queries of another dimension.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensors result(Tensor scores, Tensor ids) const;
  void check_query(const Tensor& query) const;

  const Options options_;
  Tensor embeddings_, ids_;
};

namespace layers {
using BruteForceRetrieval = LayerHandle<BruteForceRetrievalLayer>;
}

}  // namespace keel
