#include <keel/layers/retrieval/brute_force_retrieval.h>

#include <algorithm>
#include <limits>

#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/retrieval/internal/top_candidates.h>

namespace keel {

BruteForceRetrievalLayer::BruteForceRetrievalLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.k < 1) {
    throw ValueError("BruteForceRetrieval ", name(), ": k must be positive, received ", options_.k);
  }
}

void BruteForceRetrievalLayer::update_candidates(const Tensor& candidate_embeddings,
                                                 const Tensor& candidate_ids) {
  const Shape& shape = candidate_embeddings.shape();
  if (!is_floating(candidate_embeddings.dtype())) {
    throw TypeError("BruteForceRetrieval ", name(), ": candidates must be float32 or float64, ",
                    "received ", candidate_embeddings.dtype());
  }
  if (shape.rank() != 2 || shape[1] == 0 || shape[0] < options_.k) {
    throw ValueError("BruteForceRetrieval ", name(),
                     ": candidates must be [candidates, dim] with at ", "least k = ", options_.k,
                     " of them, received shape ", shape);
  }
  if (candidate_ids && candidate_ids.shape() != shape.slice(0, 1)) {
    throw ValueError("BruteForceRetrieval ", name(),
                     ": there must be one identifier for each of the ", shape[0],
                     " candidates, received shape ", candidate_ids.shape());
  }
  if (!candidate_ids && shape[0] > std::numeric_limits<int32_t>::max()) {
    throw ValueError("BruteForceRetrieval ", name(), ": positions of ", shape[0],
                     " candidates exceed int32; pass candidate_ids");
  }
  embeddings_ = as_dtype(candidate_embeddings, DType::kFloat32);
  ids_ = candidate_ids;
}

void BruteForceRetrievalLayer::check_query(const Tensor& query) const {
  if (query.rank() == 0 || !is_floating(query.dtype())) {
    throw ValueError("BruteForceRetrieval ", name(), ": queries must be floating, [..., dim], ",
                     "received ", query.dtype(), query.shape());
  }
  if (!embeddings_ && !query.is_symbolic()) {
    throw RuntimeError("BruteForceRetrieval ", name(),
                       ": the candidates are not set; call update_candidates()");
  }
  if (embeddings_ && query.dim(-1) != kUnknown && query.dim(-1) != embeddings_.dim(1)) {
    throw ValueError("BruteForceRetrieval ", name(), ": queries must have dim ", embeddings_.dim(1),
                     ", that of the candidates, received shape ", query.shape());
  }
}

Tensors BruteForceRetrievalLayer::result(Tensor scores, Tensor ids) const {
  if (!options_.return_scores) return TensorLike(std::move(ids));
  return Tensors::tuple({TensorLike(std::move(scores)), TensorLike(std::move(ids))});
}

Tensors BruteForceRetrievalLayer::call(const Tensors& inputs, const CallContext&) {
  const Tensor query = inputs.tensor();
  check_query(query);
  const Shape shape = query.shape().with(query.rank() - 1, options_.k);
  if (query.is_symbolic()) {
    return result(Tensor::symbolic({.shape = shape}),
                  Tensor::symbolic({.shape = shape, .dtype = ids_ ? ids_.dtype() : DType::kInt32}));
  }
  const Tensor typed = as_dtype(query, DType::kFloat32);
  const std::vector<Candidate> best = top_candidates(typed.data<float>(), embeddings_.data<float>(),
                                                     embeddings_.dim(1), options_.k);
  Tensor scores = Tensor::uninitialized(shape, DType::kFloat32);
  std::ranges::transform(best, scores.mutable_data<float>().begin(), &Candidate::score);
  std::vector<int64_t> positions(best.size());
  std::ranges::transform(best, positions.begin(), &Candidate::position);
  const Tensor ids = ids_ ? take_rows(TensorLike(ids_), positions).tensor()
                          : Tensor::from(positions, {std::ssize(positions)}).cast(DType::kInt32);
  return result(std::move(scores), ids.reshaped(shape));
}

KEEL_REGISTER(Layer, BruteForceRetrievalLayer, .package = "keras_rs")

}  // namespace keel
