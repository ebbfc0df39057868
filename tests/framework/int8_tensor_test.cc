// Tensors of int8 can be stored, cast and moved, but support no arithmetic.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/framework/initializers.h>

namespace keel::int8_tensor_test {

Tensor codes() { return Tensor::from<int8_t>({-128, -1, 0, 1, 126, 127}, {3, 2}); }

TEST(Int8TensorTest, HasItsNameAndOneByteAnElement) {
  EXPECT_EQ(name_of(DType::kInt8), "int8");
  EXPECT_EQ(dtype_from_name("int8"), DType::kInt8);
  EXPECT_EQ(size_of(DType::kInt8), 1U);
  EXPECT_FALSE(is_integer(DType::kInt8)) << "those have arithmetic";
  EXPECT_EQ(codes().dtype(), DType::kInt8);
  EXPECT_EQ(codes().raw().size(), 6U);
}

TEST(Int8TensorTest, IsPrintedAsNumbers) {
  EXPECT_EQ(str(Tensor::from<int8_t>({65, -3}, {2})), "Tensor(shape=(2,), dtype=int8, [65, -3])");
}

TEST(Int8TensorTest, IsCastToOtherNumbersAndFromThem) {
  EXPECT_EQ(codes().cast(DType::kFloat32).to_vector<float>(),
            (std::vector<float>{-128, -1, 0, 1, 126, 127}));
  EXPECT_EQ(codes().cast(DType::kInt64).to_vector<int64_t>(),
            (std::vector<int64_t>{-128, -1, 0, 1, 126, 127}));
  EXPECT_EQ(
      Tensor::from<float>({-1.9F, 1.9F, 500, -500}, {4}).cast(DType::kInt8).to_vector<int8_t>(),
      (std::vector<int8_t>{-1, 1, 127, -128}));
  EXPECT_THROW((void)codes().cast(DType::kString), TypeError);
}

TEST(Int8TensorTest, IsGatheredJoinedAndReshaped) {
  const Tensor rows = ops::gather(codes(), Tensor::from<int64_t>({2, 0}, {2}));
  EXPECT_EQ(rows.to_vector<int8_t>(), (std::vector<int8_t>{126, 127, -128, -1}));
  EXPECT_EQ(ops::concat({codes(), codes()}, 0).shape(), Shape({6, 2}));
  EXPECT_EQ(ops::transpose(codes(), {1, 0}).to_vector<int8_t>(),
            (std::vector<int8_t>{-128, 0, 126, -1, 1, 127}));
  EXPECT_EQ(ops::equal(codes(), codes()).to_vector<bool>(), std::vector<bool>(6, true));
}

TEST(Int8TensorTest, HasNoArithmetic) {
  EXPECT_THROW((void)ops::add(codes(), codes()), TypeError);
  EXPECT_THROW((void)ops::sum(codes()), TypeError);
  EXPECT_THROW((void)ops::less(codes(), codes()), TypeError);
  EXPECT_THROW((void)Initializer("ones")({1}, DType::kInt8), TypeError);
}

TEST(Int8TensorTest, RowsOfCodesAndScalesAreGatheredAsFloats) {
  const Tensor scales = Tensor::from<float>({1, 2, 4}, {3});
  const Tensor rows = ops::gather_quantized(codes(), scales, Tensor::from<int32_t>({2, 1}, {2, 1}));
  EXPECT_EQ(rows.shape(), Shape({2, 1, 2}));
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{31.5F, 31.75F, 0, 0.5F}));
  const Tensor ids = Tensor::from<int64_t>({0}, {1});
  EXPECT_EQ(ops::gather_quantized(codes(), scales, Tensor::zeros({0}, DType::kInt64)).shape(),
            Shape({0, 2}));
  EXPECT_THROW((void)ops::gather_quantized(scales, scales, ids), TypeError);
  EXPECT_THROW((void)ops::gather_quantized(codes(), codes(), ids), TypeError);
  EXPECT_THROW((void)ops::gather_quantized(codes(), scales, scales), TypeError);
  EXPECT_THROW((void)ops::gather_quantized(codes(), Tensor::zeros({2}), ids), ValueError);
  EXPECT_THROW((void)ops::gather_quantized(codes(), Tensor::zeros({3, 1}), ids), ValueError);
  EXPECT_THROW((void)ops::gather_quantized(codes(), scales, Tensor::from<int64_t>({3}, {1})),
               ValueError);
  EXPECT_THROW((void)ops::gather_quantized(codes(), scales, Tensor::from<int64_t>({-1}, {1})),
               ValueError);
}

}  // namespace keel::int8_tensor_test
