#include <keel/layers/internal/naming.h>

#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/normalization/batch_normalization.h>

namespace keel::naming_test {

TEST(NamingTest, SnakeCaseMatchesKeras) {
  EXPECT_EQ(to_snake_case("Dense"), "dense");
  EXPECT_EQ(to_snake_case("BatchNormalization"), "batch_normalization");
  EXPECT_EQ(to_snake_case("PReLU"), "p_re_lu");
  EXPECT_EQ(to_snake_case("ReLU"), "re_lu");
  EXPECT_EQ(to_snake_case("LeakyReLU"), "leaky_re_lu");
  EXPECT_EQ(to_snake_case("ELU"), "elu");
  EXPECT_EQ(to_snake_case("LSTM"), "lstm");
  EXPECT_EQ(to_snake_case("Conv1D"), "conv1d");
  EXPECT_EQ(to_snake_case("GlobalAveragePooling1D"), "global_average_pooling1d");
  EXPECT_EQ(to_snake_case("RMSNormalization"), "rms_normalization");
  EXPECT_EQ(to_snake_case("MultiHeadAttention"), "multi_head_attention");
  EXPECT_EQ(to_snake_case("RMSprop"), "rm_sprop");
}

TEST(NamingTest, NamesAreNumberedFromTheSecondOn) {
  clear_session();
  const layers::Dense first({.units = 1});
  const layers::Dense second({.units = 1});
  const layers::BatchNormalization other({});
  EXPECT_EQ(first->name(), "dense");
  EXPECT_EQ(second->name(), "dense_1");
  EXPECT_EQ(other->name(), "batch_normalization");
  clear_session();
  EXPECT_EQ(layers::Dense({.units = 1})->name(), "dense");
}

TEST(NamingTest, ExplicitNamesAreNotCounted) {
  clear_session();
  EXPECT_EQ(layers::Dense({.units = 1, .name = "mine"})->name(), "mine");
  EXPECT_EQ(layers::Dense({.units = 1})->name(), "dense");
}

TEST(NamingTest, SlashesAreRejected) {
  EXPECT_THROW(layers::Dense({.units = 1, .name = "a/b"}), ValueError);
}

}  // namespace keel::naming_test
