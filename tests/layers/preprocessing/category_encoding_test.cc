#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/preprocessing/preprocessing.h>

#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::category_encoding_test {

using layers::CategoryEncoding;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::ids;
using testing_support::int_spec;
using Values = std::vector<float>;

TEST(CategoryEncodingTest, EncodesEachCategory) {
  const CategoryEncoding layer({.num_tokens = 3, .output_mode = "one_hot"});
  const Tensor y = layer(ids({2, 0}, {2, 1}));
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Values{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(layer(ids({2, 0}, {2})).shape(), Shape({2, 3}));
  EXPECT_EQ(layer(ids({2}, {1})).shape(), Shape({1, 3}));
  EXPECT_EQ(layer(ids({2, 0}, {1, 2})).shape(), Shape({1, 2, 3}));
}

TEST(CategoryEncodingTest, EncodesTheCategoriesOfASample) {
  const Tensor x = ids({2, 0, 2, 1, 1, 1}, {2, 3});
  EXPECT_EQ(CategoryEncoding({.num_tokens = 3})(x).to_vector<float>(), (Values{1, 0, 1, 0, 1, 0}));
  const CategoryEncoding counts({.num_tokens = 3, .output_mode = "count"});
  EXPECT_EQ(counts(x).to_vector<float>(), (Values{1, 0, 2, 0, 3, 0}));
  EXPECT_EQ(counts(x.cast(DType::kFloat32)).to_vector<float>(), (Values{1, 0, 2, 0, 3, 0}));
  const RaggedTensor rows = RaggedTensor::from_rows<int64_t>({{2, 2}, {}});
  EXPECT_EQ(counts(Tensors(rows)).tensor().to_vector<float>(), (Values{0, 0, 2, 0, 0, 0}));
}

TEST(CategoryEncodingTest, CountsMayHaveWeights) {
  const CategoryEncoding counts({.num_tokens = 3, .output_mode = "count"});
  const Tensor x = ids({2, 0, 2}, {1, 3});
  const Tensor weights = Tensor::from<float>({0.5, 2, 0.25}, {1, 3});
  EXPECT_EQ(counts(x, {.count_weights = weights}).to_vector<float>(), (Values{2, 0, 0.75}));
  EXPECT_EQ(counts(Tensors::list({x, weights})).tensor().to_vector<float>(), (Values{2, 0, 0.75}));
  const Tensor short_weights = Tensor::from<float>({0.5, 2}, {1, 2});
  EXPECT_THROW(counts(x, {.count_weights = short_weights}), ValueError);
  EXPECT_THROW(CategoryEncoding({.num_tokens = 3})(x, {.count_weights = weights}), ValueError);
}

TEST(CategoryEncodingTest, SparseResultsHoldEachCategoryOnce) {
  const CategoryEncoding counts(
      {.num_tokens = 3, .output_mode = "count", .sparse = true, .dtype = DType::kFloat64});
  const Tensor x = ids({2, 0, 2, 1, 1, 1}, {2, 3});
  const Tensor weights = Tensor::from<float>({0.5, 2, 0.25, 1, 1, -1}, {2, 3});
  const SparseTensor y = counts(Tensors(x), {.count_weights = weights}).leaf().sparse();
  EXPECT_EQ(y.dense_shape, Shape({2, 3}));
  EXPECT_EQ(y.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 0, 2, 1, 1}));
  EXPECT_EQ(y.values.to_vector<double>(), (std::vector<double>{2, 0.75, 1}));
  const CategoryEncoding one_hot({.num_tokens = 3, .output_mode = "one_hot", .sparse = true});
  const SparseTensor z = one_hot(Tensors(ids({2, 0}, {1, 2}))).leaf().sparse();
  EXPECT_EQ(z.dense_shape, Shape({1, 2, 3}));
  EXPECT_EQ(z.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 0, 2, 0, 1, 0}));
  EXPECT_THROW(counts(x), TypeError);
}

TEST(CategoryEncodingTest, LayersAcceptSparseResults) {
  const Tensor x = layers::input({.shape = {2}, .dtype = DType::kInt64});
  const layers::Dense head({.units = 2});
  const auto model = [&](bool sparse) {
    const CategoryEncoding encoding({.num_tokens = 3, .output_mode = "count", .sparse = sparse});
    return Functional({.inputs = x, .outputs = head(encoding(Tensors(x)))});
  };
  const Functional sparse = model(true), dense = model(false);
  const Tensor batch = ids({2, 0, 1, 1}, {2, 2});
  EXPECT_EQ(sparse(batch).to_vector<float>(), dense(batch).to_vector<float>());
  EXPECT_EQ(head->weights()[0].shape(), Shape({3, 2}));
}

TEST(CategoryEncodingTest, SparseResultsOfListsEqualDenseOnes) {
  const auto encoded = [](const TensorLike& x, bool sparse) {
    return CategoryEncoding({.num_tokens = 4, .sparse = sparse})(Tensors(x)).leaf();
  };
  const SparseTensor positions{ids({0, 1, 2, 0, 2, 3}, {3, 2}), ids({3, 1, 1}), {3, 4}};
  for (const TensorLike& x :
       {TensorLike(RaggedTensor::from_rows<int64_t>({{3}, {}, {1, 1}})), TensorLike(positions)}) {
    EXPECT_EQ(encoded(x, false).tensor().to_vector<float>(),
              (Values{0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0}));
    EXPECT_EQ(encoded(x, true).sparse().indices.to_vector<int64_t>(),
              (std::vector<int64_t>{0, 3, 2, 1}));
    EXPECT_EQ(encoded(x, true).sparse().values.to_vector<float>(), (Values{1, 1}));
  }
}

TEST(CategoryEncodingTest, WorksInAGraphAndInTheLayersDtype) {
  const Tensor x = layers::input({.shape = {3}, .dtype = DType::kInt32});
  const Tensor y = CategoryEncoding({.num_tokens = 4, .dtype = DType::kFloat64})(x);
  EXPECT_EQ(y.spec(), (TensorSpec{.shape = {kUnknown, 4}, .dtype = DType::kFloat64}));
  const Functional model({.inputs = x, .outputs = y});
  EXPECT_EQ(model(Tensor::from<int32_t>({1, 1, 3}, {1, 3})).to_vector<double>(),
            (std::vector<double>{0, 1, 0, 1}));
}

TEST(CategoryEncodingTest, RejectsCategoriesOutOfRange) {
  const CategoryEncoding layer({.num_tokens = 3});
  EXPECT_THROW(layer(ids({3}, {1, 1})), ValueError);
  EXPECT_THROW(layer(ids({-1}, {1, 1})), ValueError);
}

TEST(CategoryEncodingTest, RejectsInvalidOptions) {
  EXPECT_THROW(CategoryEncoding({}), ValueError);
  EXPECT_THROW(CategoryEncoding({.num_tokens = 3, .output_mode = "int"}), ValueError);
  EXPECT_THROW(CategoryEncoding({.num_tokens = 3, .output_mode = "tf_idf"}), ValueError);
}

TEST(CategoryEncodingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "CategoryEncoding",
                         .config = R"({"num_tokens": 4, "output_mode": "count"})",
                         .inputs = int_spec({2, 3}),
                         .output = float_spec({2, 4})});
}

}  // namespace keel::category_encoding_test
