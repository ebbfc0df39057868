#include <keel/layers/core/embedding.h>

#include <algorithm>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/support/layer_contract.h"

namespace keel::embedding_test {

using layers::Embedding;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::int_spec;

Embedding counting() {
  Embedding embedding({.input_dim = 4, .output_dim = 2});
  embedding->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  embedding->embeddings().assign(Tensor::from<float>({0, 1, 2, 3, 4, 5, 6, 7}, {4, 2}));
  return embedding;
}

TEST(EmbeddingTest, ReadsOneRowPerId) {
  const Tensor y = counting()(Tensor::from<int64_t>({2, 0}, {1, 2}));
  EXPECT_EQ(y.shape(), Shape({1, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{4, 5, 0, 1}));
}

TEST(EmbeddingTest, AcceptsIdsOfOtherDtypes) {
  const std::vector<float> row = {6, 7};
  EXPECT_EQ(counting()(Tensor::from<int32_t>({3}, {1})).to_vector<float>(), row);
  EXPECT_EQ(counting()(Tensor::from<float>({3}, {1})).to_vector<float>(), row);
}

TEST(EmbeddingTest, InitialValuesAreUniformWithinOneTwentieth) {
  const Embedding embedding({.input_dim = 100, .output_dim = 10});
  embedding(Tensor::from<int64_t>({0}, {1}));
  const Tensor rows = embedding->embeddings();
  const auto [low, high] = std::ranges::minmax(rows.data<float>());
  EXPECT_GE(low, -0.05F);
  EXPECT_LT(high, 0.05F);
  EXPECT_GT(high - low, 0.09F);
}

TEST(EmbeddingTest, GradientHoldsOnlyTheRowsThatWereRead) {
  const Embedding embedding = counting();
  GradientTape tape;
  const Tensor loss = ops::sum(embedding(Tensor::from<int64_t>({1, 1}, {2})));
  const auto gradients = tape.gradient(loss, {embedding->embeddings()});
  ASSERT_TRUE(gradients[0].is_slices());
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), (std::vector<float>{0, 0, 2, 2, 0, 0, 0, 0}));
}

TEST(EmbeddingTest, RejectsIdsOutsideTheTable) {
  EXPECT_THROW(counting()(Tensor::from<int64_t>({4}, {1})), ValueError);
  EXPECT_THROW(counting()(Tensor::from<int64_t>({-1}, {1})), ValueError);
}

TEST(EmbeddingTest, RejectsInvalidOptions) {
  EXPECT_THROW(Embedding({.input_dim = 0, .output_dim = 2}), ValueError);
  EXPECT_THROW(Embedding({.input_dim = 2, .output_dim = 0}), ValueError);
}

TEST(EmbeddingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Embedding",
                         .config = R"({"input_dim": 9, "output_dim": 4})",
                         .inputs = int_spec({2, 3}),
                         .output = float_spec({2, 3, 4}),
                         .trainable_weights = 1,
                         .weights = 1});
}

}  // namespace keel::embedding_test
