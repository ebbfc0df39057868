#include <keel/layers/feature_columns/feature_column.h>

#include <fstream>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/functional/functional.h>

#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::feature_column::feature_column_test {

using testing_support::ids;
using testing_support::strings;
using testing_support::TemporaryFolder;

using Ids = std::vector<int64_t>;
using Words = std::vector<std::string>;

Ids ids_of(const TensorLike& t) { return t.values().to_vector<int64_t>(); }

TEST(IdentityColumn, PassesIdsAndRejectsThoseBeyondItsBuckets) {
  const Categorical column = categorical_column_with_identity("a", 3);
  EXPECT_EQ(column->name(), "a");
  EXPECT_EQ(column->num_buckets(), 3);
  EXPECT_FALSE(column->is_sequence());
  EXPECT_EQ(ids_of(column->transform_feature(ids({0, 2}))), Ids({0, 2}));
  EXPECT_THROW(column->transform_feature(ids({3})), ValueError);
  EXPECT_THROW(column->transform_feature(strings({"x"})), TypeError);
}

TEST(IdentityColumn, ReplacesIdsBeyondItsBucketsByTheDefault) {
  const Categorical column = categorical_column_with_identity("a", 3, 1);
  EXPECT_EQ(ids_of(column->transform_feature(ids({0, 7, -4}))), Ids({0, 1, 1}));
}

TEST(IdentityColumn, RejectsBucketsAndDefaultsOutOfRange) {
  EXPECT_THROW(categorical_column_with_identity("a", 0), ValueError);
  EXPECT_THROW(categorical_column_with_identity("a", 3, 3), ValueError);
  EXPECT_THROW(categorical_column_with_identity("a", 3, -1), ValueError);
}

TEST(Columns, DropMissingDenseValues) {
  const Categorical column = categorical_column_with_identity("a", 9);
  const TensorLike out = column->transform_feature(Tensor::from<int64_t>({3, -1, 0, 4}, {2, 2}));
  EXPECT_EQ(ids_of(out), Ids({3, 0, 4}));
  EXPECT_EQ(out.sparse().indices.to_vector<int64_t>(), Ids({0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(out.sparse().dense_shape, Shape({2, 2}));
  EXPECT_THROW(column->transform_feature(Tensor::zeros({1, 1, 1}, DType::kInt64)), ValueError);
}

TEST(Columns, KeepTheRowsOfRaggedFeatures) {
  const Categorical column = categorical_column_with_vocabulary_list("w", Words{"x", "y"});
  const auto rows = RaggedTensor::from_rows<std::string>({{"y"}, {}, {"x", "z"}});
  const TensorLike out = column->transform_feature(rows);
  EXPECT_EQ(ids_of(out), Ids({1, 0, -1}));
  EXPECT_EQ(out.ragged().row_splits.to_vector<int64_t>(), Ids({0, 1, 1, 3}));
}

TEST(VocabularyColumn, NumbersWordsInOrderAndHashesUnknownOnes) {
  const Words list = {"red", "green", "blue"};
  const auto plain = categorical_column_with_vocabulary_list("w", list);
  EXPECT_EQ(ids_of(plain->transform_feature(strings({"blue", "pink", "", "red"}))),
            Ids({2, -1, 0}));
  const auto fallback = categorical_column_with_vocabulary_list("w", list, {.default_value = 1});
  EXPECT_EQ(ids_of(fallback->transform_feature(strings({"pink"}))), Ids({1}));
  const auto shared = categorical_column_with_vocabulary_list("w", list, {.num_oov_buckets = 4});
  EXPECT_EQ(shared->num_buckets(), 7);
  const Ids found = ids_of(shared->transform_feature(strings({"pink", "pink", "grey"})));
  EXPECT_EQ(found[0], found[1]);
  for (const int64_t id : found) EXPECT_TRUE(id >= 3 && id < 7) << id;
}

TEST(VocabularyColumn, AcceptsIntegersAsWords) {
  const auto column = categorical_column_with_vocabulary_list("w", Ids{100, 7});
  EXPECT_EQ(ids_of(column->transform_feature(ids({7, 100, 3}))), Ids({1, 0, -1}));
  EXPECT_THROW(column->transform_feature(strings({"7"})), TypeError);
}

TEST(VocabularyColumn, RejectsInvalidListsAndOptions) {
  const Words list = {"a", "b"};
  EXPECT_THROW(categorical_column_with_vocabulary_list("w", Words{}), ValueError);
  EXPECT_THROW(categorical_column_with_vocabulary_list("w", Words{"a", "a"}), ValueError);
  EXPECT_THROW(categorical_column_with_vocabulary_list("w", list, {.num_oov_buckets = -1}),
               ValueError);
  EXPECT_THROW(categorical_column_with_vocabulary_list("w", list,
                                                       {.default_value = 0, .num_oov_buckets = 1}),
               ValueError);
  EXPECT_THROW(categorical_column_with_vocabulary_list("w", list, {.default_value = 2}),
               ValueError);
}

TEST(VocabularyColumn, ReadsWordsFromTheLinesOfAFile) {
  const TemporaryFolder folder;
  const std::string path = folder / "vocabulary.txt";
  std::ofstream(path) << "x\ny\r\nz\n";
  const auto all = categorical_column_with_vocabulary_file("w", path);
  EXPECT_EQ(all->num_buckets(), 3);
  EXPECT_EQ(ids_of(all->transform_feature(strings({"z", "y"}))), Ids({2, 1}));
  EXPECT_EQ(categorical_column_with_vocabulary_file("w", path, 2)->num_buckets(), 2);
  EXPECT_THROW(categorical_column_with_vocabulary_file("w", path, 4), ValueError);
  EXPECT_THROW(categorical_column_with_vocabulary_file("w", path, 0), ValueError);
  EXPECT_THROW(categorical_column_with_vocabulary_file("w", path + ".none"), IoError);
}

TEST(HashColumn, EqualWordsShareABucket) {
  const auto column = categorical_column_with_hash_bucket("w", 5);
  const Ids found = ids_of(column->transform_feature(strings({"a", "b", "a"})));
  EXPECT_EQ(found[0], found[2]);
  for (const int64_t id : found) EXPECT_TRUE(id >= 0 && id < 5);
  EXPECT_EQ(ids_of(column->transform_feature(ids({12}))),
            ids_of(column->transform_feature(strings({"12"}))));
  // The bins that Keras documents for FarmHash.
  EXPECT_EQ(ids_of(categorical_column_with_hash_bucket("w", 3)->transform_feature(
                strings({"A", "B", "C", "D", "E"}))),
            Ids({1, 0, 1, 1, 2}));
  EXPECT_THROW(categorical_column_with_hash_bucket("w", 0), ValueError);
}

TEST(WeightedColumn, IsNamedByBothFeatures) {
  const auto inner = categorical_column_with_identity("c", 6);
  const auto column = weighted_categorical_column(inner, "c_weight");
  EXPECT_EQ(column->name(), "c_weighted_by_c_weight");
  EXPECT_EQ(column->key(), "c");
  EXPECT_EQ(column->weight_key(), "c_weight");
  EXPECT_THROW(weighted_categorical_column(column, "w"), ValueError);
  EXPECT_THROW(weighted_categorical_column(inner, ""), ValueError);
  EXPECT_THROW(weighted_categorical_column(numeric_column("x"), "w"), TypeError);
}

TEST(SequenceColumns, SequenceColumnsTransformAlike) {
  EXPECT_TRUE(sequence_categorical_column_with_identity("s", 3)->is_sequence());
  const auto listed = sequence_categorical_column_with_vocabulary_list("s", Words{"a"});
  EXPECT_TRUE(listed->is_sequence());
  EXPECT_EQ(ids_of(listed->transform_feature(strings({"a"}))), Ids({0}));
}

TEST(NumericColumn, ReturnsOneRowOfFloatsPerExample) {
  const auto scalar = numeric_column("x");
  EXPECT_EQ(scalar->dense_tensor(ids({1, 2})).shape(), Shape({2, 1}));
  EXPECT_EQ(scalar->dense_tensor(Tensor::zeros({2, 1})).dtype(), DType::kFloat32);
  const auto matrix = numeric_column("m", {.shape = {2, 3}});
  EXPECT_EQ(matrix->dense_tensor(Tensor::zeros({4, 2, 3})).shape(), Shape({4, 6}));
  EXPECT_THROW(matrix->dense_tensor(Tensor::zeros({4, 3, 3})), ValueError);
  EXPECT_THROW(scalar->dense_tensor(strings({"a"})), TypeError);
  EXPECT_THROW(numeric_column("x", {.shape = {kUnknown}}), ValueError);
}

TEST(NumericColumn, NormalizesSymbolicFeatures) {
  const auto column =
      numeric_column("x", {.normalizer_fn = [](const Tensor& x) { return x * 2.0; }});
  EXPECT_EQ(column->dense_tensor(ids({3})).to_vector<float>(), std::vector<float>{6});
  EXPECT_TRUE(column->dense_tensor(layers::input({.shape = {1}})).is_symbolic());
}

TEST(EmbeddingColumn, HasATableConfig) {
  const auto column =
      embedding_column(categorical_column_with_identity("a", 3), 4, {.combiner = "sum"});
  EXPECT_EQ(column->name(), "a_embedding");
  EXPECT_EQ(column->dimension(), 4);
  EXPECT_EQ(column->combiner(), "sum");
}

TEST(EmbeddingColumn, RejectsOtherColumnsAndInvalidNumbers) {
  const auto a = categorical_column_with_identity("a", 3);
  EXPECT_THROW(embedding_column(numeric_column("x"), 4), TypeError);
  EXPECT_THROW(embedding_column(nullptr, 4), TypeError);
  EXPECT_THROW(embedding_column(a, 0), ValueError);
  EXPECT_THROW(embedding_column(a, 4, {.combiner = "max"}), ValueError);
}

}  // namespace keel::feature_column::feature_column_test
