#include <keel/framework/tensor.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <unordered_set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel::tensor_test {

using testing::HasSubstr;

TEST(TensorTest, FactoriesFillTheValues) {
  EXPECT_EQ(Tensor::from<float>({1, 2, 3, 4}, {2, 2}).to_vector<float>(),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Tensor::zeros({3}, DType::kInt64).to_vector<int64_t>(), (std::vector<int64_t>(3)));
  EXPECT_EQ(Tensor::zeros({2}, DType::kString).to_vector<std::string>(),
            (std::vector<std::string>(2)));
  EXPECT_EQ(Tensor::full({2}, 7).to_vector<int32_t>(), (std::vector<int32_t>{7, 7}));
  EXPECT_EQ(Tensor::scalar(2.5).item<double>(), 2.5);
  EXPECT_EQ(Tensor::from(std::vector<bool>{true, false}, {2}).to_vector<bool>(),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(Tensor::from<std::string>({"a", "b"}, {2}).data<std::string>()[1], "b");
}

TEST(TensorTest, KnowsItsSpec) {
  const Tensor t = Tensor::uninitialized({2, 3}, DType::kFloat64);
  EXPECT_EQ(t.shape(), (Shape{2, 3}));
  EXPECT_EQ(t.dtype(), DType::kFloat64);
  EXPECT_EQ(t.rank(), 2);
  EXPECT_EQ(t.dim(-1), 3);
  EXPECT_EQ(t.size(), 6);
  EXPECT_EQ(t.raw().size(), 48U);
}

TEST(TensorTest, TheNumberOfValuesMustFitTheShape) {
  EXPECT_THROW(Tensor::from<float>({1, 2, 3}, {2, 2}), ValueError);
  EXPECT_THROW(Tensor::from(std::vector<bool>{true}, {2}), ValueError);
  EXPECT_THROW(Tensor::zeros({kUnknown}), ValueError);
}

TEST(TensorTest, AnEmptyHandleThrows) {
  const Tensor empty;
  EXPECT_FALSE(empty);
  EXPECT_TRUE(Tensor::scalar(1.0F));
  EXPECT_THROW(empty.spec(), RuntimeError);
  EXPECT_THROW(empty.data<float>(), RuntimeError);
  EXPECT_THROW(empty.id(), RuntimeError);
  EXPECT_THROW(empty.clone(), RuntimeError);
  EXPECT_THROW(empty.producer(), RuntimeError);
}

TEST(TensorTest, ValuesAreReadAsTheirOwnTypeOnly) {
  const Tensor t = Tensor::scalar(1.0F);
  EXPECT_THROW(t.data<double>(), TypeError);
  EXPECT_THROW(t.item<int32_t>(), TypeError);
  EXPECT_THROW(Tensor::zeros({2}).item<float>(), ValueError);
  EXPECT_THROW(Tensor::zeros({1}, DType::kString).raw(), TypeError);
}

TEST(TensorTest, OnlyASoleOwnerMayWrite) {
  Tensor t = Tensor::zeros({2});
  EXPECT_TRUE(t.unique());
  t.mutable_data<float>()[0] = 5;
  {
    const Tensor copy = t;
    EXPECT_FALSE(t.unique());
    EXPECT_THROW(t.mutable_data<float>(), RuntimeError);
  }
  const Tensor view = t.reshaped({1, 2});
  EXPECT_FALSE(t.unique());
  EXPECT_THROW(t.mutable_raw(), RuntimeError);
  Tensor clone = t.clone();
  clone.mutable_data<float>()[0] = 6;
  EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{5, 0}));
}

TEST(TensorTest, ReshapingKeepsTheBytes) {
  const Tensor t = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor r = t.reshaped({3, 2});
  EXPECT_EQ(r.data<float>().data(), t.data<float>().data());
  EXPECT_EQ(r.shape(), (Shape{3, 2}));
  EXPECT_NE(r.id(), t.id());
  EXPECT_THROW(t.reshaped({4}), ValueError);
}

TEST(TensorTest, AnAliasSharesBytesUnderAnotherIdentity) {
  const Tensor t = Tensor::from<float>({1, 2}, {2});
  EXPECT_NE(t.aliased().id(), t.id());
  EXPECT_EQ(t.aliased().data<float>().data(), t.data<float>().data());
  const Tensor symbol = Tensor::symbolic({.shape = {kUnknown, 3}});
  EXPECT_TRUE(symbol.aliased().is_symbolic());
  EXPECT_EQ(symbol.aliased().spec(), symbol.spec());
}

TEST(TensorTest, AViewHasSomeColumnsOfRows) {
  const Tensor t = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  const Tensor view = t.columns(1, {2, 3});
  EXPECT_TRUE(view.is_view());
  EXPECT_FALSE(t.is_view());
  EXPECT_EQ(view.shape(), (Shape{2, 3}));
  EXPECT_EQ(view.rows<float>().first, t.data<float>().data() + 1);
  EXPECT_EQ(view.rows<float>().step, 4);
  EXPECT_EQ(view.clone().to_vector<float>(), (std::vector<float>{2, 3, 4, 6, 7, 8}));
  EXPECT_FALSE(view.clone().is_view());
  EXPECT_EQ(view.cast(DType::kInt32).to_vector<int32_t>(),
            (std::vector<int32_t>{2, 3, 4, 6, 7, 8}));
  EXPECT_EQ(t.columns(0, {2, 2, 2}).clone().to_vector<float>(), t.to_vector<float>());
  EXPECT_EQ(view.contiguous().id(), view.id());
  EXPECT_EQ(view.contiguous().to_vector<float>(), view.clone().to_vector<float>());
  EXPECT_EQ(t.contiguous().data<float>().data(), t.data<float>().data());
  const Tensor alias = view.aliased();
  EXPECT_NE(alias.id(), view.id());
  EXPECT_EQ(alias.rows<float>().first, view.rows<float>().first);
  EXPECT_EQ(t.owners(), 3);
  EXPECT_TRUE(alias.held_once());
  const Tensor copy = alias;
  EXPECT_FALSE(alias.held_once());
  EXPECT_EQ(t.owners(), 3);
}

TEST(TensorTest, AViewMayBeOneRowOverAndOver) {
  const Tensor row = Tensor::from<double>({1, 2}, {2});
  const Tensor view = row.repeated(3);
  EXPECT_EQ(view.shape(), (Shape{3, 2}));
  EXPECT_EQ(view.rows<double>().step, 0);
  EXPECT_EQ(view.clone().to_vector<double>(), (std::vector<double>{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(row.repeated(0).clone().size(), 0);
  EXPECT_EQ(Tensor::scalar(5).repeated(2).clone().to_vector<int32_t>(),
            (std::vector<int32_t>{5, 5}));
}

TEST(TensorTest, RowsHaveAStartAndAStep) {
  const Tensor t = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  EXPECT_EQ(t.rows<float>().first, t.data<float>().data());
  EXPECT_EQ(t.rows<float>().step, 4);
  EXPECT_THROW(Tensor::scalar(1.0F).rows<float>(), ValueError);
  EXPECT_THROW(t.rows<double>(), TypeError);
}

TEST(TensorTest, AViewHasNoContiguousData) {
  const Tensor t = Tensor::zeros({2, 4});
  Tensor view = t.columns(0, {2, 3});
  EXPECT_THROW(view.data<float>(), RuntimeError);
  EXPECT_THROW(view.raw(), RuntimeError);
  EXPECT_THROW(view.reshaped({3, 2}), RuntimeError);
  EXPECT_THROW(view.columns(0, {2, 1}), RuntimeError);
  EXPECT_THROW(view.repeated(2), RuntimeError);
  EXPECT_EQ(str(view), "Tensor(shape=(2, 3), dtype=float32, view)");
  // Even a view that is the only owner of its buffer is not writable.
  Tensor alone = Tensor::zeros({2, 4}).columns(0, {2, 4});
  EXPECT_EQ(alone.owners(), 1);
  EXPECT_FALSE(alone.unique());
  EXPECT_THROW(alone.mutable_data<float>(), RuntimeError);
}

TEST(TensorTest, RejectsColumnsOutOfRange) {
  const Tensor t = Tensor::zeros({2, 4});
  for (const Shape& shape :
       {Shape{2, 4}, Shape{3, 1}, Shape{2, 2, 2}, Shape{kUnknown, 1}, Shape{}}) {
    EXPECT_THROW(t.columns(1, shape), ValueError) << shape;
  }
  EXPECT_THROW(t.columns(-1, {2, 1}), ValueError);
  EXPECT_THROW(Tensor::scalar(1.0F).columns(0, {1}), ValueError);
  EXPECT_THROW(t.repeated(-1), ValueError);
  EXPECT_THROW(Tensor::zeros({2, 2}, DType::kString).columns(0, {2, 1}), TypeError);
  EXPECT_THROW(Tensor::symbolic({.shape = {2, 2}}).columns(0, {2, 1}), RuntimeError);
}

TEST(TensorTest, CloneCopiesStrings) {
  const Tensor words = Tensor::from<std::string>({"one", "a rather longer word than that"}, {2});
  EXPECT_EQ(words.clone().to_vector<std::string>(), words.to_vector<std::string>());
}

TEST(TensorTest, CastsAsCppCasts) {
  const Tensor t = Tensor::from<float>({-1.7F, 0.0F, 2.9F}, {3});
  EXPECT_EQ(t.cast(DType::kInt32).to_vector<int32_t>(), (std::vector<int32_t>{-1, 0, 2}));
  EXPECT_EQ(t.cast(DType::kBool).to_vector<bool>(), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(t.cast(DType::kFloat64).data<double>()[1], 0.0);
  EXPECT_EQ(t.cast(DType::kFloat32).id(), t.id());
  EXPECT_THROW(t.cast(DType::kString), TypeError);
  EXPECT_THROW(Tensor::zeros({1}, DType::kString).cast(DType::kInt64), TypeError);
}

TEST(TensorTest, CastsToIntegersSaturate) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor t = Tensor::from<float>({-1e30F, 2147483648.0F, infinity, -infinity, NAN}, {5});
  EXPECT_EQ(t.cast(DType::kInt32).to_vector<int32_t>(),
            (std::vector<int32_t>{INT32_MIN, INT32_MAX, INT32_MAX, INT32_MIN, 0}));
  EXPECT_EQ(t.cast(DType::kInt64).to_vector<int64_t>(),
            (std::vector<int64_t>{INT64_MIN, 2147483648, INT64_MAX, INT64_MIN, 0}));
  EXPECT_EQ(t.cast(DType::kUint8).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 255, 255, 0, 0}));
  const Tensor edges = Tensor::from<double>({-2147483648.9, 2147483647.9}, {2});
  EXPECT_EQ(edges.cast(DType::kInt32).to_vector<int32_t>(),
            (std::vector<int32_t>{INT32_MIN, INT32_MAX}));
}

TEST(TensorTest, ASymbolHasASpecButNoValues) {
  const Tensor symbol = Tensor::symbolic({.shape = {kUnknown, 3}, .dtype = DType::kInt64});
  EXPECT_TRUE(symbol.is_symbolic());
  EXPECT_FALSE(symbol.unique());
  EXPECT_EQ(symbol.dim(0), kUnknown);
  EXPECT_EQ(symbol.producer(), nullptr);
  EXPECT_EQ(symbol.producer_output(), 0);
  EXPECT_THROW(symbol.data<int64_t>(), RuntimeError);
  EXPECT_THROW(symbol.raw(), RuntimeError);
  EXPECT_FALSE(Tensor::zeros({1}).is_symbolic());
}

TEST(TensorTest, IdentitiesAreUniqueAcrossThreads) {
  std::vector<std::vector<uint64_t>> ids(4);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : ids) {
      threads.emplace_back([&mine] {
        for (int i = 0; i < 5000; ++i) mine.push_back(Tensor::scalar(1.0F).id());
      });
    }
  }
  std::unordered_set<uint64_t> all;
  for (const auto& mine : ids) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 20000U);
}

TEST(TensorTest, PrintsItsFirstValues) {
  EXPECT_EQ(str(Tensor::from<float>({1, 2, 3, 4}, {2, 2})),
            "Tensor(shape=(2, 2), dtype=float32, [1, 2, 3, 4])");
  EXPECT_EQ(str(Tensor::from<uint8_t>({65}, {1})), "Tensor(shape=(1,), dtype=uint8, [65])");
  EXPECT_EQ(str(Tensor()), "Tensor()");
  EXPECT_EQ(str(Tensor::symbolic({.shape = {kUnknown}})),
            "Tensor(shape=(?,), dtype=float32, symbolic)");
  EXPECT_THAT(str(Tensor::zeros({17})), HasSubstr("0, ...]"));
}

TEST(TensorTest, BlobsAreReadOnlyAndKeepTheirOwner) {
  auto memory = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  Tensor blob = Tensor::from_blob(memory->data(), {2, 2}, DType::kFloat32, memory);
  EXPECT_EQ(blob.data<float>().data(), memory->data());
  EXPECT_EQ(memory.use_count(), 2);
  EXPECT_FALSE(blob.unique());
  EXPECT_THROW(blob.mutable_data<float>(), RuntimeError);
  Tensor copy = blob.clone();
  copy.mutable_data<float>()[0] = 9;
  EXPECT_EQ((*memory)[0], 1);
  EXPECT_EQ(blob.reshaped({4}).to_vector<float>(), *memory);
  blob = Tensor();
  EXPECT_EQ(memory.use_count(), 1);
}

TEST(TensorTest, BlobsOfOtherAddressesAreErrors) {
  const auto memory = std::make_shared<std::vector<float>>(4);
  const auto* bytes = reinterpret_cast<const char*>(memory->data());
  EXPECT_THROW(Tensor::from_blob(bytes + 1, {1}, DType::kFloat32, memory), ValueError);
  EXPECT_THROW(Tensor::from_blob(nullptr, {1}, DType::kFloat32, memory), ValueError);
  EXPECT_THROW(Tensor::from_blob(bytes, {1}, DType::kFloat32, nullptr), ValueError);
  EXPECT_THROW(Tensor::from_blob(bytes, {1}, DType::kString, memory), TypeError);
}

}  // namespace keel::tensor_test
