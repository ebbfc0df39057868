// Tests layers/core/masking.cc.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/reshaping/reshaping.h>

#include "tests/support/layer_contract.h"

namespace keel::masks_test {

using testing_support::expect_layer_contract;
using testing_support::float_spec;

Tensor bools(const std::vector<bool>& values, const Shape& shape) {
  return Tensor::from<bool>(values, shape);
}

// Counts the steps that its input's mask does not exclude.
class CountSteps final : public Layer {
 public:
  CountSteps() : Layer("CountSteps") {}
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override {
    const Tensor x = inputs.tensor();
    const Tensor mask = x.mask();
    if (!mask) return ops::sum(ops::scale(x, 0), {1, 2});
    return ops::sum(ops::cast(mask, DType::kFloat32), {1});
  }
};

TEST(MaskTest, BelongsToTheHandleAndNotToResultsOfOps) {
  const Tensor x = Tensor::zeros({2, 3});
  const Tensor masked = x.with_mask(bools({true, false}, {2}));
  EXPECT_FALSE(x.mask());
  EXPECT_EQ(Tensor(masked).mask().to_vector<bool>(), std::vector({true, false}));
  EXPECT_FALSE(ops::relu(masked).mask());
  EXPECT_FALSE(masked.with_mask(Tensor()).mask());
  EXPECT_EQ(masked.id(), x.id());
}

TEST(MaskTest, HasTheFirstDimensionsOfTheTensor) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_THROW(x.with_mask(bools({true, false, true}, {3})), ValueError);
  EXPECT_THROW(x.with_mask(Tensor::zeros({2})), ValueError);
  EXPECT_THROW(x.with_mask(Tensor::full({2, 3, 1}, true)), ValueError);
}

TEST(MaskTest, EmbeddingMasksIdZero) {
  const layers::Embedding embedding({.input_dim = 5, .output_dim = 2, .mask_zero = true});
  const Tensor found = embedding(Tensor::from<int64_t>({1, 0, 0, 4}, {2, 2}));
  EXPECT_EQ(found.mask().to_vector<bool>(), std::vector({true, false, false, true}));
  const layers::Embedding plain({.input_dim = 5, .output_dim = 2});
  EXPECT_FALSE(plain(Tensor::from<int64_t>({1, 0}, {1, 2})).mask());
}

TEST(MaskTest, MaskingZeroesStepsThatEqualTheValue) {
  const layers::Masking masking({.mask_value = 9});
  const Tensor y = masking(Tensor::from<float>({9, 9, 9, 1, 2, 3}, {1, 3, 2}));
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>({0, 0, 9, 1, 2, 3}));
  EXPECT_EQ(y.mask().to_vector<bool>(), std::vector({false, true, true}));
  EXPECT_THROW(masking(Tensor::zeros({3})), ValueError);
}

TEST(MaskTest, PassesThroughLayersThatSupportItOnly) {
  const layers::Masking masking({});
  const layers::Dense dense({.units = 4});
  const layers::Flatten flatten({});
  const Tensor y = dense(masking(Tensor::from<float>({0, 0, 1, 1}, {1, 2, 2})));
  EXPECT_EQ(y.mask().to_vector<bool>(), std::vector({false, true}));
  EXPECT_FALSE(flatten(y).mask());
}

TEST(MaskTest, IsRecomputedForEachBatchOfAFunctionalModel) {
  const Tensor ids = layers::input({.shape = {3}, .dtype = DType::kInt64});
  const layers::Embedding embedding({.input_dim = 5, .output_dim = 2, .mask_zero = true});
  const auto count = make_layer<CountSteps>();
  const Tensor found = layers::Dense({.units = 2})(embedding(ids));
  EXPECT_TRUE(found.mask());
  const Functional model({.inputs = ids, .outputs = count(found)});
  EXPECT_EQ(model(Tensor::from<int64_t>({1, 0, 2, 0, 0, 3}, {2, 3})).to_vector<float>(),
            std::vector<float>({2, 1}));
}

TEST(MaskTest, AnExplicitMaskIsPartOfTheGraph) {
  const Tensor x = layers::input({.shape = {2, 2}});
  const Tensor keep = layers::input({.shape = {2}, .dtype = DType::kBool});
  const auto count = make_layer<CountSteps>();
  const Tensor counted = count(x.with_mask(keep));
  const Functional model({.inputs = Tensors::list({x, keep}), .outputs = counted});
  const Tensors batch =
      Tensors::list({Tensor::zeros({2, 2, 2}), bools({true, false, true, true}, {2, 2})});
  EXPECT_EQ(model(batch).tensor().to_vector<float>(), std::vector<float>({1, 2}));
}

TEST(MaskTest, PassesThroughSequential) {
  const Sequential model(
      {.layers = {layers::Masking({}), layers::Dense({.units = 3}), make_layer<CountSteps>()}});
  EXPECT_EQ(model(Tensor::from<float>({0, 1, 0, 0}, {2, 2, 1})).to_vector<float>(),
            std::vector<float>({1, 0}));
}

TEST(MaskTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Masking",
                         .config = "{}",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::masks_test
