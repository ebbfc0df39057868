// Tests layers/feature_columns/column_config.cc.
#include <keel/layers/feature_columns/tpu_embedding_column.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

namespace keel::tpu::tpu_embedding_column_test {

namespace fc = feature_column;
using Values = std::vector<float>;

Column identity(const std::string& key, int64_t buckets = 5) {
  return fc::categorical_column_with_identity(key, buckets);
}
Column sequence(const std::string& key, int64_t buckets = 5) {
  return fc::sequence_categorical_column_with_identity(key, buckets);
}

TEST(TPUEmbeddingColumn, NamesItsTableVariableAndFeatures) {
  const TPUColumn plain = tpu::embedding_column(identity("a"), 4);
  EXPECT_EQ(plain->name(), "a_embedding");
  EXPECT_EQ(plain->feature_key(), "a");
  EXPECT_EQ(plain->weight_key(), "");
  EXPECT_EQ(plain->table_name(), "tbl_a");
  EXPECT_EQ(plain->vocabulary_size(), 5);
  EXPECT_EQ(plain->sequence_length_feature_name(), "a_seq_length_");
  EXPECT_EQ(plain->checkpoint_name("dense_features"),
            "dense_features/a_embedding/embedding_weights");
  const TPUColumn weighted =
      tpu::embedding_column(fc::weighted_categorical_column(identity("c"), "w"), 4);
  EXPECT_EQ(weighted->feature_key(), "c");
  EXPECT_EQ(weighted->weight_key(), "w");
  EXPECT_EQ(weighted->table_name(), "tbl_c_weighted_by_w");
}

TEST(TPUEmbeddingColumn, RejectsColumnsThatAnEngineDoesNotSupport) {
  EXPECT_THROW(tpu::embedding_column(fc::numeric_column("x"), 4), TypeError);
  EXPECT_THROW(tpu::embedding_column(fc::categorical_column_with_hash_bucket("h", 4), 4),
               TypeError);
  EXPECT_THROW(tpu::embedding_column(nullptr, 4), TypeError);
}

TEST(TPUEmbeddingColumn, RejectsADimensionThatIsNotPositive) {
  EXPECT_THROW(tpu::embedding_column(identity("a"), 0), ValueError);
}

TEST(SpecRowsH, H02_SequenceColumnsNeedALengthAndOthersMustNotHaveOne) {
  EXPECT_THROW(tpu::embedding_column(sequence("x"), 4), ValueError);
  EXPECT_THROW(tpu::embedding_column(identity("y"), 4, {.max_sequence_length = 2}), ValueError);
  EXPECT_THROW(
      shared_embedding_columns({sequence("x"), sequence("y")}, 4, {.max_sequence_lengths = {2}}),
      ValueError);
  EXPECT_THROW(
      shared_embedding_columns({sequence("x"), identity("y")}, 4, {.max_sequence_lengths = {2, 1}}),
      ValueError);
  EXPECT_THROW(shared_embedding_columns({sequence("x"), identity("y")}, 4), ValueError);
}

TEST(SharedColumns, ShareOneTableNamedBySortedColumns) {
  const auto columns = shared_embedding_columns({identity("d"), identity("c")}, 4);
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0]->feature_key(), "d");
  EXPECT_EQ(columns[1]->name(), "c_shared_embedding");
  for (const TPUColumn& column : columns) {
    EXPECT_EQ(column->table_name(), "tbl_c_d_shared_embedding");
    EXPECT_EQ(column->checkpoint_name("dense_features"), "c_d_shared_embedding");
  }
  const auto named =
      shared_embedding_columns({identity("d")}, 4, {.shared_embedding_collection_name = "both"});
  EXPECT_EQ(named[0]->table_name(), "tbl_both");
}

TEST(SharedColumns, RejectNoColumnsAndOnesOfDifferentBuckets) {
  EXPECT_THROW(shared_embedding_columns({}, 4), ValueError);
  EXPECT_THROW(shared_embedding_columns({identity("a", 3), identity("b", 4)}, 4), ValueError);
  EXPECT_THROW(shared_embedding_columns({fc::numeric_column("x")}, 4), TypeError);
}

TEST(SplitSequenceColumns, SeparatesSequencesInOrder) {
  const Column s = tpu::embedding_column(sequence("s"), 4, {.max_sequence_length = 2});
  const Column a = tpu::embedding_column(identity("a"), 4);
  const Column b = tpu::embedding_column(identity("b"), 4);
  const SplitColumns split = split_sequence_columns({b, s, a});
  EXPECT_EQ(split.sequence_columns, std::vector<Column>{s});
  EXPECT_EQ(split.non_sequence_columns, (std::vector<Column>{b, a}));
  EXPECT_THROW(split_sequence_columns({fc::embedding_column(identity("a"), 4)}), TypeError);
}

TEST(LookupDevice, DeviceMustBeKnownAndATensorCoreNeedsAWidth) {
  const auto with = [](const std::string& device, std::optional<int64_t> width = {}) {
    return EmbeddingColumnOptions{.embedding_lookup_device = device, .tensor_core_width = width};
  };
  EXPECT_NO_THROW(tpu::embedding_column(identity("a"), 4, with("cpu")));
  EXPECT_THROW(tpu::embedding_column(identity("a"), 4, with("gpu")), ValueError);
  EXPECT_THROW(tpu::embedding_column(identity("a"), 4, with("tpu_tensor_core")), ValueError);
  EmbeddingColumnOptions steps = with("tpu_tensor_core", 3);
  steps.max_sequence_length = 2;
  EXPECT_THROW(tpu::embedding_column(sequence("s"), 4, steps), ValueError);
}

TEST(LookupDevice, HostDoesNotTrainAndEmbeddingCoreDoesNotServe) {
  const auto on = [](const std::string& device) {
    return tpu::embedding_column(identity("a"), 4, {.embedding_lookup_device = device});
  };
  EXPECT_THROW(check_lookup_device(*on("cpu"), true), ValueError);
  EXPECT_NO_THROW(check_lookup_device(*on("cpu"), false));
  EXPECT_THROW(check_lookup_device(*on("tpu_embedding_core"), false), ValueError);
  EXPECT_NO_THROW(check_lookup_device(*on("tpu_embedding_core"), true));
  EXPECT_NO_THROW(check_lookup_device(*on(""), false));
}

TPUColumn tensor_core(const std::string& combiner, int64_t width) {
  return tpu::embedding_column(identity("a"), 1,
                               {.combiner = combiner,
                                .embedding_lookup_device = "tpu_tensor_core",
                                .tensor_core_width = width});
}

TEST(TensorCoreLookup, TruncatesAndPadsRowsAndCombinesOverTheMask) {
  const Tensor table = Tensor::from<float>({10, 11, 12, 13, 14}, {5, 1});
  const auto rows = RaggedTensor::from_rows<int64_t>({{1, 2, 4}, {3}});
  EXPECT_EQ(tensor_core_lookup(*tensor_core("sum", 2), table, rows).to_vector<float>(),
            Values({23, 13}));
  EXPECT_EQ(tensor_core_lookup(*tensor_core("mean", 4), table, rows).to_vector<float>(),
            Values({37.0F / 3, 13}));
  EXPECT_THROW(tensor_core_lookup(*tensor_core("sqrtn", 2), table, rows), ValueError);
}

TEST(TensorCoreLookup, AcceptsSparseAndDenseIdsAndDividesAnEmptyRowByZero) {
  const Tensor table = Tensor::from<float>({10, 11, 12, 13, 14}, {5, 1});
  const SparseTensor sparse = {.indices = Tensor::from<int64_t>({1, 0, 1, 3}, {2, 2}),
                               .values = Tensor::from<int64_t>({4, 0}, {2}),
                               .dense_shape = {2, 4}};
  const Values mean = tensor_core_lookup(*tensor_core("mean", 3), table, sparse).to_vector<float>();
  EXPECT_TRUE(std::isnan(mean[0]));
  EXPECT_EQ(mean[1], 12);
  const Tensor dense = Tensor::from<int64_t>({0, 1, 2, 3}, {2, 2});
  EXPECT_EQ(tensor_core_lookup(*tensor_core("sum", 2), table, dense).to_vector<float>(),
            Values({21, 25}));
}

TEST(TensorCoreLookup, DropsUnknownWords) {
  const auto words =
      fc::categorical_column_with_vocabulary_list("a", std::vector<std::string>{"x", "y"});
  const TPUColumn column = tpu::embedding_column(
      words, 1,
      {.combiner = "sum", .embedding_lookup_device = "tpu_tensor_core", .tensor_core_width = 1});
  const Tensor table = Tensor::from<float>({10, 11}, {2, 1});
  const Tensor values = Tensor::from<std::string>({"what", "y", "x"}, {3});
  const RaggedTensor rows = {values, Tensor::from<int64_t>({0, 2, 3}, {3})};
  EXPECT_EQ(tensor_core_lookup(*column, table, words->transform_feature(rows)).to_vector<float>(),
            Values({11, 10}));
  const Tensor dense = Tensor::from<int64_t>({-1, 1}, {2, 1});
  EXPECT_EQ(tensor_core_lookup(*column, table, dense).to_vector<float>(), Values({0, 11}));
}

TEST(TensorCoreLookup, GradientsReachTheLookedUpRows) {
  const Variable table(Tensor::from<float>({1, 2, 3, 4, 5}, {5, 1}), {.name = "t"});
  GradientTape tape;
  const Tensor out = tensor_core_lookup(*tensor_core("sum", 3), table.read(),
                                        RaggedTensor::from_rows<int64_t>({{1, 1}, {4}}));
  const auto gradients = tape.gradient(ops::sum(out), {table});
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), Values({0, 2, 0, 0, 1}));
}

}  // namespace keel::tpu::tpu_embedding_column_test
