// Tests framework/tensor_like.cc and instantiations.cc.
#include <keel/framework/tensor_like.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::tensor_like_test {

using testing::HasSubstr;
using testing_support::message_of;

using Ids = std::vector<int64_t>;

RaggedTensor ragged() { return RaggedTensor::from_rows<int64_t>({{1, 2}, {}, {3}, {4, 5, 6}}); }

// Rows 0 to 3 of width 3; row 1 is empty.
SparseTensor sparse() {
  return {Tensor::from<int64_t>({0, 1, 0, 2, 2, 0, 3, 0, 3, 1}, {5, 2}),
          Tensor::from<float>({1, 2, 3, 4, 5}, {5}),
          {4, 3}};
}

Tensor dense() { return Tensor::from<float>({0, 1, 10, 11, 20, 21, 30, 31}, {4, 2}); }

Tensors batch() {
  return {{"dense", dense()},
          {"words", Tensor::from<std::string>({"a", "b", "c", "d"}, {4})},
          {"more", Tensors::list({ragged(), sparse()})}};
}

void expect_ragged(const TensorLike& t, const Ids& values, const Ids& splits) {
  EXPECT_EQ(t.ragged().values.to_vector<int64_t>(), values);
  EXPECT_EQ(t.ragged().row_splits.to_vector<int64_t>(), splits);
  EXPECT_NO_THROW(t.ragged().validate("test"));
}

void expect_sparse(const TensorLike& t, const Ids& indices, const std::vector<float>& values,
                   const Shape& shape) {
  EXPECT_EQ(t.sparse().indices.to_vector<int64_t>(), indices);
  EXPECT_EQ(t.sparse().values.to_vector<float>(), values);
  EXPECT_EQ(t.sparse().dense_shape, shape);
  EXPECT_NO_THROW(t.sparse().validate("test"));
}

TEST(TensorLikeTest, SpecsDescribeTheDenseEquivalent) {
  const Specs specs = specs_of(batch());
  EXPECT_EQ(specs["dense"].leaf(), (TensorSpec{.shape = {4, 2}}));
  EXPECT_EQ(
      specs["more"][0].leaf(),
      (TensorSpec{.shape = {4, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}));
  EXPECT_EQ(specs["more"][1].leaf(), (TensorSpec{.shape = {4, 3}, .layout = Layout::kSparse}));
  const RaggedTensor wide = {Tensor::zeros({3, 5}), Tensor::from<int64_t>({0, 1, 3}, {3})};
  EXPECT_EQ(TensorLike(wide).spec().shape, (Shape{2, kUnknown, 5}));
  const RaggedTensor symbol = {Tensor::symbolic({.shape = {kUnknown}}),
                               Tensor::symbolic({.shape = {kUnknown}, .dtype = DType::kInt64})};
  EXPECT_EQ(TensorLike(symbol).spec().shape, (Shape{kUnknown, kUnknown}));
}

TEST(TensorLikeTest, AccessIsByLayout) {
  EXPECT_EQ(TensorLike(ragged()).layout(), Layout::kRagged);
  EXPECT_EQ(TensorLike(sparse()).values().size(), 5);
  EXPECT_THROW(TensorLike(ragged()).tensor(), TypeError);
  EXPECT_THROW(TensorLike(ragged()).sparse(), TypeError);
  EXPECT_THROW(TensorLike(dense()).ragged(), TypeError);
  EXPECT_THROW(TensorLike(dense()).sparse(), TypeError);
  EXPECT_THROW(TensorLike(sparse()).tensor(), TypeError);
  EXPECT_THROW(TensorLike(sparse()).ragged(), TypeError);
}

TEST(TensorLikeTest, SymbolsAreFoundAnywhere) {
  EXPECT_FALSE(any_symbolic(batch()));
  EXPECT_FALSE(any_symbolic(Tensors::list({})));
  EXPECT_TRUE(any_symbolic(Tensors::list({batch(), Tensor::symbolic({.shape = {3}})})));
}

TEST(TensorLikeTest, RaggedPartsMustBeConsistent) {
  const auto check = [](Tensor values, Tensor splits) {
    return message_of<ValueError>([&] { RaggedTensor{values, splits}.validate("Lookup"); });
  };
  const Tensor three = Tensor::zeros({3});
  EXPECT_THAT(check(three, Tensor::from<int64_t>({0, 2}, {2})), HasSubstr("Lookup"));
  check(three, Tensor::from<int64_t>({1, 3}, {2}));
  check(three, Tensor::from<int64_t>({0, 2, 1, 3}, {4}));
  check(three, Tensor::from<int32_t>({0, 3}, {2}));
  check(three, Tensor::from<int64_t>({0, 3}, {1, 2}));
  check(three, Tensor::zeros({0}, DType::kInt64));
  check(Tensor::scalar(1.0F), Tensor::from<int64_t>({0, 1}, {2}));
  EXPECT_NO_THROW(ragged().validate("Lookup"));
  EXPECT_NO_THROW(
      (RaggedTensor{Tensor::zeros({0}), Tensor::zeros({1}, DType::kInt64)}.validate("")));
}

TEST(TensorLikeTest, SparsePartsMustBeConsistent) {
  const auto check = [](Tensor indices, Tensor values, Shape shape) {
    return message_of<ValueError>([&] { SparseTensor{indices, values, shape}.validate("Lookup"); });
  };
  const Tensor indices = Tensor::from<int64_t>({0, 1, 1, 0}, {2, 2});
  const Tensor values = Tensor::zeros({2});
  EXPECT_NO_THROW((SparseTensor{indices, values, {2, 2}}.validate("Lookup")));
  EXPECT_THAT(check(indices, values, {2, 1}), HasSubstr("Lookup"));
  check(indices, values, {1, 2});
  check(indices, values, {2, 2, 2});
  check(indices, values, {});
  check(indices, values, {kUnknown, 2});
  check(indices, Tensor::zeros({3}), {2, 2});
  check(indices, Tensor::zeros({2, 1}), {2, 2});
  check(indices.cast(DType::kInt32), values, {2, 2});
  check(Tensor::from<int64_t>({0, -1, 1, 0}, {2, 2}), values, {2, 2});
  check(Tensor::from<int64_t>({1, 0, 0, 1}, {2, 2}), values, {2, 2});
}

TEST(TensorLikeTest, SlicesHoldTheirRows) {
  const Tensors part = slice_rows(batch(), 1, 3);
  EXPECT_EQ(part["dense"].tensor().to_vector<float>(), (std::vector<float>{10, 11, 20, 21}));
  EXPECT_EQ(part["dense"].tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(part["words"].tensor().to_vector<std::string>(), (std::vector<std::string>{"b", "c"}));
  expect_ragged(part["more"][0].leaf(), {3}, {0, 0, 1});
  expect_sparse(part["more"][1].leaf(), {1, 0}, {3}, {2, 3});
}

TEST(TensorLikeTest, SlicesMayBeEmptyOrWhole) {
  const Tensors none = slice_rows(batch(), 2, 2);
  EXPECT_EQ(row_count(none), 0);
  expect_ragged(none["more"][0].leaf(), {}, {0});
  expect_sparse(none["more"][1].leaf(), {}, {}, {0, 3});
  const TensorLike whole = slice_rows(TensorLike(sparse()), 0, 4);
  expect_sparse(whole, {0, 1, 0, 2, 2, 0, 3, 0, 3, 1}, {1, 2, 3, 4, 5}, {4, 3});
}

TEST(TensorLikeTest, ASliceMustLieWithinTheRows) {
  EXPECT_THROW(slice_rows(batch(), -1, 2), ValueError);
  EXPECT_THROW(slice_rows(batch(), 3, 2), ValueError);
  EXPECT_THROW(slice_rows(batch(), 0, 5), ValueError);
  EXPECT_THROW(slice_rows(TensorLike(Tensor::scalar(1.0F)), 0, 0), ValueError);
}

TEST(TensorLikeTest, RowsAreTakenInTheGivenOrder) {
  const Tensors taken = take_rows(batch(), Ids{3, 0, 3, 1});
  EXPECT_EQ(taken["dense"].tensor().to_vector<float>(),
            (std::vector<float>{30, 31, 0, 1, 30, 31, 10, 11}));
  EXPECT_EQ(taken["words"].tensor().to_vector<std::string>(),
            (std::vector<std::string>{"d", "a", "d", "b"}));
  expect_ragged(taken["more"][0].leaf(), {4, 5, 6, 1, 2, 4, 5, 6}, {0, 3, 5, 8, 8});
  expect_sparse(taken["more"][1].leaf(), {0, 0, 0, 1, 1, 1, 1, 2, 2, 0, 2, 1}, {4, 5, 1, 2, 4, 5},
                {4, 3});
  EXPECT_EQ(row_count(take_rows(batch(), Ids{})), 0);
}

TEST(TensorLikeTest, PositionsMustExist) {
  EXPECT_THROW(take_rows(batch(), Ids{0, 4}), ValueError);
  EXPECT_THROW(take_rows(batch(), Ids{-1}), ValueError);
}

TEST(TensorLikeTest, ConcatenatedSlicesAreTheWhole) {
  const Tensors joined = concat_rows(
      {slice_rows(batch(), 0, 1), slice_rows(batch(), 1, 1), slice_rows(batch(), 1, 4)});
  EXPECT_EQ(joined["dense"].tensor().to_vector<float>(), dense().to_vector<float>());
  EXPECT_EQ(joined["words"].tensor().to_vector<std::string>(),
            (std::vector<std::string>{"a", "b", "c", "d"}));
  expect_ragged(joined["more"][0].leaf(), {1, 2, 3, 4, 5, 6}, {0, 2, 2, 3, 6});
  expect_sparse(joined["more"][1].leaf(), {0, 1, 0, 2, 2, 0, 3, 0, 3, 1}, {1, 2, 3, 4, 5}, {4, 3});
}

TEST(TensorLikeTest, ConcatenatedSparseTensorsHaveTheLargestWidth) {
  const SparseTensor wide = {
      Tensor::from<int64_t>({1, 8}, {1, 2}), Tensor::from<float>({9}, {1}), {2, 9}};
  expect_sparse(concat_rows({Tensors(sparse()), Tensors(wide)}).leaf(),
                {0, 1, 0, 2, 2, 0, 3, 0, 3, 1, 5, 8}, {1, 2, 3, 4, 5, 9}, {6, 9});
  const auto cube = [](Shape shape) {
    return Tensors(SparseTensor{Tensor::zeros({0, 3}, DType::kInt64), Tensor::zeros({0}), shape});
  };
  expect_sparse(concat_rows({cube({2, 3, 4}), cube({1, 3, 5})}).leaf(), {}, {}, {3, 3, 5});
  EXPECT_THROW(concat_rows({cube({2, 3, 4}), cube({2, 2, 4})}), ValueError);
}

TEST(TensorLikeTest, IncompatibleBatchesCannotBeConcatenated) {
  EXPECT_THROW(concat_rows({}), ValueError);
  const Tensors a = {{"x", Tensor::zeros({2, 3})}};
  const auto with = [](TensorLike t) { return Tensors{{"x", Tensors(std::move(t))}}; };
  const std::string message =
      message_of<ValueError>([&] { concat_rows({a, with(Tensor::zeros({2, 4}))}); });
  EXPECT_THAT(message, HasSubstr("'x'"));
  EXPECT_THROW(concat_rows({a, with(Tensor::zeros({2}))}), ValueError);
  EXPECT_THROW(concat_rows({a, with(Tensor::zeros({2, 3}, DType::kInt64))}), TypeError);
  EXPECT_THROW(concat_rows({a, with(ragged())}), TypeError);
  EXPECT_THROW(concat_rows({a, Tensors{{"y", Tensor::zeros({2, 3})}}}), ValueError);
  EXPECT_THROW(concat_rows({a, Tensors::list({Tensor::zeros({2, 3})})}), TypeError);
}

TEST(TensorLikeTest, RowCountIsSharedByAllLeaves) {
  EXPECT_EQ(row_count(batch()), 4);
  EXPECT_EQ(row_count(Tensor::symbolic({.shape = {kUnknown, 3}})), kUnknown);
  const Tensors uneven = {{"a", Tensor::zeros({2})}, {"b", Tensors::list({Tensor::zeros({3})})}};
  EXPECT_THAT(message_of<ValueError>([&] { row_count(uneven); }), HasSubstr("'b/0'"));
  EXPECT_THROW(row_count(Tensors::list({})), ValueError);
  EXPECT_THROW(row_count(Tensor::scalar(1.0F)), ValueError);
}

}  // namespace keel::tensor_like_test
