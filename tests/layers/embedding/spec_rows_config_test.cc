// Rows A01-A07: validation and defaults of configs.
// Tests layers/embedding/tables/table_config.cc.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/embedding/tpu_embedding.h>

namespace keel::spec_rows_config_test {

TEST(SpecRowsA, A01_VocabularySizeMustBePositive) {
  EXPECT_THROW(make_table({.vocabulary_size = 0, .dim = 4}), ValueError);
  EXPECT_THROW(make_table({.vocabulary_size = -3, .dim = 4}), ValueError);
}

TEST(SpecRowsA, A02_DimMustBePositive) {
  EXPECT_THROW(make_table({.vocabulary_size = 4, .dim = 0}), ValueError);
}

// TensorFlow rejects "max", which Keel has in addition.
TEST(SpecRowsA, A03_CombinersAreMeanSumAndSqrtN) {
  for (const char* wrong : {"min", ""}) {
    EXPECT_THROW(make_table({.vocabulary_size = 4, .dim = 4, .combiner = wrong}), ValueError);
  }
  for (const char* right : {"mean", "sum", "sqrtn"}) {
    EXPECT_EQ(make_table({.vocabulary_size = 4, .dim = 4, .combiner = right})->combiner, right);
  }
  EXPECT_EQ(make_table({.vocabulary_size = 4, .dim = 4})->combiner, "mean");
}

TEST(SpecRowsA, A04_AnInitializerMustBeOne) {
  // A number does not compile. A name may be unknown at run time.
  EXPECT_THROW(make_table({.vocabulary_size = 4, .dim = 4, .initializer = Initializer("3.0")}),
               ValueError);
}

TEST(SpecRowsA, A05_TheDefaultInitializerIsATruncatedNormal) {
  set_random_seed(5);
  const Table table = make_table({.vocabulary_size = 1000, .dim = 16});
  EXPECT_FALSE(table->initializer);
  const Tensor values = table_initializer(*table)({1000, 16});
  double sum = 0;
  double squares = 0;
  for (const float x : values.data<float>()) {
    EXPECT_LE(std::abs(x), 0.5F);
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const double mean = sum / 16000;
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 16000 - mean * mean), 0.2199, 0.01);
}

TEST(SpecRowsA, A06_FeaturesNeedATableAndALengthThatIsNotNegative) {
  // A flag that is not a bool does not compile.
  const auto use = [](const FeatureConfig& feature) {
    layers::TPUEmbedding({.feature_config = feature});
  };
  EXPECT_THROW(use({.table = nullptr}), ValueError);
  const Table table = make_table({.vocabulary_size = 4, .dim = 2});
  EXPECT_THROW(use({.table = table, .max_sequence_length = -1}), ValueError);
  EXPECT_NO_THROW(use({.table = table, .max_sequence_length = 0}));
}

TEST(SpecRowsA, A07_QuantizationNeedsTwoBuckets) {
  EXPECT_THROW(QuantizationConfig(1, 0, 1), ValueError);
  EXPECT_EQ(QuantizationConfig(2, 0, 1).num_buckets, 2);
}

TEST(RowIdInitializerTest, RowIdInitializerNumbersRowsFromTheOffset) {
  EXPECT_EQ(tpu::RowIdInitializer(3)({2, 2}).to_vector<float>(), (std::vector<float>{3, 3, 4, 4}));
  const Table table =
      make_table({.vocabulary_size = 3, .dim = 2, .initializer = tpu::RowIdInitializer()});
  EXPECT_EQ(table_initializer(*table)({3, 2}).to_vector<float>(),
            (std::vector<float>{0, 0, 1, 1, 2, 2}));
}

}  // namespace keel::spec_rows_config_test
