// Tests layers/embedding/v1/internal/enqueue_data.cc.
#include <keel/layers/embedding/v1/internal/v1_input.h>

#include <gtest/gtest.h>

namespace keel::tpu::v1::v1_input_test {

using Ids = std::vector<int64_t>;

Configs one_feature(FeatureOptions feature, std::optional<std::string> combiner = "mean") {
  feature.table_id = "t";
  Configs out;
  out.feature_to_config_dict.emplace("x", feature);
  out.table_to_config_dict.emplace(
      "t", TableOptions{.vocabulary_size = 10, .dimension = 2, .combiner = combiner});
  return out;
}

SparseTensor sparse(const Ids& indices, const Ids& values, const Shape& shape) {
  const auto n = static_cast<int64_t>(values.size());
  return {Tensor::from(indices, {n, 2}), Tensor::from(values, {n}), shape};
}

EmbeddingInput split_x(const Tensors::Dict& batch, const Configs& configs) {
  return split_inputs(batch, configs).embedding_inputs.at("x");
}

TEST(SpecRowsH, H11_WeightsMustBeSparseAndServeOneFeatureAndIdsMustBeIntegers) {
  const Tensor dense_weights = Tensor::zeros({1, 2});
  const SparseTensor ids = sparse({0, 0, 0, 1}, {1, 2}, {1, 2});
  SparseTensor weights = ids;
  weights.values = Tensor::from<float>({1, 2}, {2});
  const Configs weighted = one_feature({.weight_key = "w"});
  EXPECT_NO_THROW(split_x({{"x", ids}, {"w", weights}}, weighted));
  EXPECT_THROW(split_x({{"x", ids}, {"w", dense_weights}}, weighted), ValueError);

  Configs two = weighted;
  two.feature_to_config_dict.emplace("y", FeatureOptions{.table_id = "t", .weight_key = "w"});
  EXPECT_THROW(split_inputs({{"x", ids}, {"y", ids}, {"w", weights}}, two), ValueError);

  const Tensor words = Tensor::from<std::string>({"a"}, {1});
  EXPECT_THROW(split_x({{"x", words}}, one_feature({})), ValueError);

  const Tensor dense_ids = Tensor::from<int64_t>({1, 2}, {1, 2});
  EXPECT_THROW(
      split_x({{"x", dense_ids}, {"w", weights}}, one_feature({.weight_key = "w"}, std::nullopt)),
      ValueError);
}

TEST(SpecRowsH, H12_ASequenceFeatureAddsItsLengths) {
  const Configs configs = one_feature({.max_sequence_length = 2});
  const SparseTensor ids = sparse({0, 0, 0, 1, 0, 2, 1, 0}, {1, 2, 3, 4}, {3, 3});
  const SplitInputs out = split_inputs({{"x", ids}}, configs);
  EXPECT_EQ(out.features.at("x_seq_length_").tensor().to_vector<int64_t>(), Ids({2, 1, 0}));
  const auto ragged = RaggedTensor::from_rows<int64_t>({{1, 2, 3}, {4}, {}});
  EXPECT_EQ(split_inputs({{"x", ragged}}, configs)
                .features.at("x_seq_length_")
                .tensor()
                .to_vector<int64_t>(),
            Ids({2, 1, 0}));
}

TEST(SpecRowsH, H13_DenseIdsBecomeSparseAndIdZeroIsLost) {
  const Tensor ids = Tensor::from<int32_t>({0, 3, 2, 0}, {2, 2});
  const SparseTensor out = split_x({{"x", ids}}, one_feature({})).ids.sparse();
  EXPECT_EQ(out.values.to_vector<int64_t>(), Ids({3, 2}));
  EXPECT_EQ(out.indices.to_vector<int64_t>(), Ids({0, 1, 1, 0}));
  EXPECT_EQ(out.dense_shape, Shape({2, 2}));
}

TEST(SplitInputs, KeepsDenseIdsOfATableWithoutCombiner) {
  const Tensor ids = Tensor::from<int64_t>({0, 3}, {2});
  const EmbeddingInput out = split_x({{"x", ids}}, one_feature({}, std::nullopt));
  EXPECT_EQ(out.ids.tensor().to_vector<int64_t>(), Ids({0, 3}));
}

TEST(SplitInputs, ExtractsFeaturesAndWeightsFromTheBatch) {
  const auto ids = RaggedTensor::from_rows<int64_t>({{1}, {2, 3}});
  const auto weights = RaggedTensor::from_rows<double>({{0.5}, {1, 2}});
  const SplitInputs out = split_inputs({{"x", ids}, {"w", weights}, {"age", Tensor::zeros({2})}},
                                       one_feature({.weight_key = "w"}));
  EXPECT_EQ(out.features.size(), 1U);
  EXPECT_TRUE(out.features.contains("age"));
  EXPECT_EQ(out.embedding_inputs.at("x").weights->values().to_vector<float>(),
            std::vector<float>({0.5, 1, 2}));
}

TEST(SplitInputs, DropsUnknownWordsWithTheirWeights) {
  const Configs configs = one_feature({.weight_key = "w"});
  const auto ids = RaggedTensor::from_rows<int64_t>({{-1, 4}, {-1}, {5}});
  const auto weights = RaggedTensor::from_rows<float>({{1, 2}, {3}, {4}});
  const EmbeddingInput ragged = split_x({{"x", ids}, {"w", weights}}, configs);
  EXPECT_EQ(ragged.ids.values().to_vector<int64_t>(), Ids({4, 5}));
  EXPECT_EQ(ragged.ids.ragged().row_splits.to_vector<int64_t>(), Ids({0, 1, 1, 2}));
  EXPECT_EQ(ragged.weights->values().to_vector<float>(), std::vector<float>({2, 4}));
  const SparseTensor words = sparse({0, 0, 1, 1}, {-1, 6}, {2, 2});
  const EmbeddingInput out = split_x({{"x", words}}, one_feature({}));
  EXPECT_EQ(out.ids.sparse().indices.to_vector<int64_t>(), Ids({1, 1}));
}

TEST(SplitInputs, DroppedWordsKeepTheirStepsInSequences) {
  const Configs configs = one_feature({.max_sequence_length = 3, .weight_key = "w"});
  const auto rows = RaggedTensor::from_rows<int64_t>({{5, -1, 6, 7}, {-1, 8, -1}, {}});
  const auto weights = RaggedTensor::from_rows<float>({{1, 2, 3, 4}, {5, 6, 7}, {}});
  const SplitInputs out = split_inputs({{"x", rows}, {"w", weights}}, configs);
  const EmbeddingInput& x = out.embedding_inputs.at("x");
  EXPECT_EQ(x.ids.sparse().values.to_vector<int64_t>(), Ids({5, 6, 7, 8}));
  EXPECT_EQ(x.ids.sparse().indices.to_vector<int64_t>(), Ids({0, 0, 0, 2, 0, 3, 1, 1}));
  EXPECT_EQ(x.ids.sparse().dense_shape, Shape({3, 4}));
  EXPECT_EQ(x.weights->sparse().values.to_vector<float>(), std::vector<float>({1, 3, 4, 6}));
  EXPECT_EQ(x.weights->sparse().indices.to_vector<int64_t>(), Ids({0, 0, 0, 2, 0, 3, 1, 1}));
  EXPECT_EQ(out.features.at("x_seq_length_").tensor().to_vector<int64_t>(), Ids({3, 2, 0}));
}

TEST(SplitInputs, RejectsABatchWithoutTheFeatureOrItsWeights) {
  const auto ids = RaggedTensor::from_rows<int64_t>({{1}});
  EXPECT_THROW(split_inputs({}, one_feature({})), ValueError);
  EXPECT_THROW(split_inputs({{"x", ids}}, one_feature({.weight_key = "w"})), ValueError);
  EXPECT_THROW(split_inputs({{"x", Tensors::list({ids})}}, one_feature({})), ValueError);
}

TEST(SplitInputs, RejectsUnsupportedRanks) {
  EXPECT_THROW(split_x({{"x", Tensor::zeros({1, 1, 1}, DType::kInt64)}}, one_feature({})),
               ValueError);
  const SparseTensor cube = {
      Tensor::from<int64_t>({0, 0, 0}, {1, 3}), Tensor::from<int64_t>({1}, {1}), {1, 1, 1}};
  EXPECT_THROW(split_x({{"x", cube}}, one_feature({})), ValueError);
}

TEST(SplitInputs, RejectsWeightsAtOtherPositions) {
  const SparseTensor ids = sparse({0, 0}, {1}, {1, 2});
  SparseTensor weights = sparse({0, 1}, {1}, {1, 2});
  weights.values = Tensor::from<float>({1}, {1});
  const Configs configs = one_feature({.weight_key = "w"});
  EXPECT_THROW(split_x({{"x", ids}, {"w", weights}}, configs), ValueError);
  EXPECT_THROW(split_x({{"x", ids}, {"w", RaggedTensor::from_rows<float>({{1}})}}, configs),
               ValueError);
}

}  // namespace keel::tpu::v1::v1_input_test
