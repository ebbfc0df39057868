#include <keel/layers/retrieval/brute_force_retrieval.h>

#include <gtest/gtest.h>

#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"

namespace keel::brute_force_retrieval_test {

using testing_support::expect_layer_contract;
using testing_support::float_spec;

Tensor candidates() { return Tensor::from<float>({1, 0, 0, 1, 1, 1, -1, 0}, {4, 2}); }
Tensor queries() { return Tensor::from<float>({1, 2, 3, 0, 0, 1}, {3, 2}); }

TEST(BruteForceRetrievalTest, ReturnsScoresAndIdentifiersOfTheBest) {
  const layers::BruteForceRetrieval layer({.k = 2});
  layer->update_candidates(candidates(), Tensor::from<int64_t>({10, 11, 12, 13}, {4}));
  const Tensors found = layer(Tensors(TensorLike(queries())));
  ASSERT_EQ(found.kind(), NestKind::kTuple);
  EXPECT_EQ(found[0].tensor().shape(), Shape({3, 2}));
  EXPECT_EQ(found[0].tensor().to_vector<float>(), (std::vector<float>{3, 2, 3, 3, 1, 1}));
  EXPECT_EQ(found[1].tensor().to_vector<int64_t>(), (std::vector<int64_t>{12, 11, 10, 12, 11, 12}));
}

TEST(BruteForceRetrievalTest, IdentifiersDefaultToPositions) {
  const layers::BruteForceRetrieval layer({.k = 1, .return_scores = false});
  layer->update_candidates(candidates());
  EXPECT_EQ(layer(queries()).to_vector<int32_t>(), (std::vector<int32_t>{2, 0, 1}));
}

TEST(BruteForceRetrievalTest, IdentifiersMayBeStrings) {
  const layers::BruteForceRetrieval layer({.k = 1, .return_scores = false});
  layer->update_candidates(candidates(), Tensor::from<std::string>({"a", "b", "c", "d"}, {4}));
  EXPECT_EQ(layer(queries()).to_vector<std::string>(), (std::vector<std::string>{"c", "a", "b"}));
}

TEST(BruteForceRetrievalTest, QueriesHaveAnyLeadingDimensions) {
  const layers::BruteForceRetrieval layer({.k = 2, .return_scores = false});
  layer->update_candidates(candidates());
  EXPECT_EQ(layer(queries().reshaped({3, 1, 2})).shape(), Shape({3, 1, 2}));
  const Tensor one = Tensor::from<double>({0, 1}, {2});
  EXPECT_EQ(layer(one).to_vector<int32_t>(), (std::vector<int32_t>{1, 2}));
}

TEST(BruteForceRetrievalTest, NewCandidatesReplaceTheOld) {
  const layers::BruteForceRetrieval layer({.k = 1, .return_scores = false});
  layer->update_candidates(candidates(), Tensor::from<int64_t>({10, 11, 12, 13}, {4}));
  layer->update_candidates(Tensor::from<float>({0, 0, 0, 0, 0, 0, 0, 0, -1, 1}, {5, 2}));
  EXPECT_EQ(layer(queries()).to_vector<int32_t>(), (std::vector<int32_t>{4, 0, 4}));
}

TEST(BruteForceRetrievalTest, IncompatibleArgumentsIsRejected) {
  EXPECT_THROW(layers::BruteForceRetrieval({.k = 0}), ValueError);
  const layers::BruteForceRetrieval layer({.k = 2});
  EXPECT_THROW(layer(Tensors(TensorLike(queries()))), RuntimeError);
  EXPECT_THROW(layer->update_candidates(Tensor::zeros({1, 2})), ValueError);
  EXPECT_THROW(layer->update_candidates(Tensor::zeros({4})), ValueError);
  EXPECT_THROW(layer->update_candidates(candidates(), Tensor::zeros({3})), ValueError);
  EXPECT_THROW(layer->update_candidates(Tensor::zeros({4, 2}, DType::kInt32)), TypeError);
  EXPECT_FALSE(layer->candidate_embeddings());
  layer->update_candidates(candidates());
  EXPECT_THROW(layer(Tensors(TensorLike(Tensor::zeros({3, 3})))), ValueError);
  EXPECT_THROW(layer(Tensors(TensorLike(Tensor::zeros({3, 2}, DType::kInt32)))), ValueError);
}

TEST(BruteForceRetrievalTest, ConfigsHaveNoCandidates) {
  const layers::BruteForceRetrieval layer({.k = 3, .return_scores = false, .name = "top"});
  layer->update_candidates(candidates());
  EXPECT_EQ(to_json(layer->get_config()),
            R"({"name": "top", "trainable": true, "dtype": "float32", "k": 3, )"
            R"("return_scores": false})");
  EXPECT_TRUE(layer->weights().empty());
}

TEST(BruteForceRetrievalTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "BruteForceRetrieval",
       .config = R"({"k": 2})",
       .inputs = float_spec({2, 3}),
       .output =
           Specs::tuple({float_spec({2, 2}), TensorSpec{.shape = {2, 2}, .dtype = DType::kInt32}}),
       .prepare = [](Layer& layer) {
         dynamic_cast<BruteForceRetrievalLayer&>(layer).update_candidates(Tensor::zeros({4, 3}));
       }});
}

}  // namespace keel::brute_force_retrieval_test
