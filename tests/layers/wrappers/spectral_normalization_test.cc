#include <keel/layers/wrappers/spectral_normalization.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::spectral_normalization_test {

using layers::Dense;
using layers::SpectralNormalization;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::float_spec;
using testing_support::message_of;
using Floats = std::vector<float>;

SpectralNormalization dense(int64_t iterations, const std::vector<float>& kernel) {
  const SpectralNormalization layer(
      {.layer = Dense({.units = 2, .name = "inner"}), .power_iterations = iterations});
  layer->build(float_spec({kUnknown, 2}));
  layer->kernel().assign(Tensor::from<float>(kernel, {2, 2}));
  return layer;
}

TEST(SpectralNormalizationTest, DividesTheKernelByItsGreatestSingularValue) {
  // The singular values of the matrix are 3 sqrt(5) and sqrt(5).
  const SpectralNormalization layer = dense(60, {3, 0, 4, 5});
  layer(Tensor::zeros({1, 2}), {.training = true});
  const float scale = static_cast<float>(1 / (3 * std::sqrt(5.0)));
  expect_near(layer->kernel().read().to_vector<float>(),
              Floats({3 * scale, 0, 4 * scale, 5 * scale}), {.absolute = 1e-5});
  // The right singular vector of 3 sqrt(5) is (1, 1) / sqrt(2).
  const auto u = layer->vector_u().read().to_vector<float>();
  EXPECT_NEAR(std::abs(u[0]), std::sqrt(0.5), 1e-5);
  EXPECT_NEAR(u[0], u[1], 1e-5);
}

TEST(SpectralNormalizationTest, InferenceLeavesTheKernelUnchanged) {
  const SpectralNormalization layer = dense(1, {3, 0, 4, 5});
  const Tensor y = layer(Tensor::from<float>({1, 1}, {1, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({7, 5}));
  EXPECT_EQ(layer->kernel().read().to_vector<float>(), Floats({3, 0, 4, 5}));
}

TEST(SpectralNormalizationTest, ZerosStayZeros) {
  const SpectralNormalization layer = dense(1, {0, 0, 0, 0});
  const auto before = layer->vector_u().read().to_vector<float>();
  layer(Tensor::zeros({1, 2}), {.training = true});
  EXPECT_EQ(layer->kernel().read().to_vector<float>(), Floats({0, 0, 0, 0}));
  EXPECT_EQ(layer->vector_u().read().to_vector<float>(), before);
}

TEST(SpectralNormalizationTest, TheOutputHasTheDtypeOfTheInput) {
  const SpectralNormalization layer(
      {.layer =
           layers::Embedding({.input_dim = 3, .output_dim = 2, .embeddings_initializer = "ones"})});
  EXPECT_EQ(layer(Tensor::from<int32_t>({0, 1}, {1, 2})).dtype(), DType::kInt32);
  EXPECT_EQ(layer->kernel().name(), "embeddings");
}

TEST(SpectralNormalizationTest, OnlyTheVectorIsNotTrainable) {
  const SpectralNormalization layer = dense(1, {3, 0, 4, 5});
  std::vector<std::string> names;
  for (const Variable& weight : layer->weights()) names.push_back(weight.name());
  EXPECT_THAT(names, testing::ElementsAre("kernel", "bias", "vector_u"));
  EXPECT_EQ(layer->trainable_variables().size(), 2u);
  EXPECT_EQ(layer->vector_u().shape(), Shape({1, 2}));
}

TEST(SpectralNormalizationTest, RejectsOtherLayersAndReplicas) {
  EXPECT_THROW(SpectralNormalization(SpectralNormalizationOptions{}), ValueError);
  EXPECT_THROW(SpectralNormalization({.layer = Dense({.units = 1}), .power_iterations = 0}),
               ValueError);
  EXPECT_THAT(message_of<ValueError>([] {
                SpectralNormalization({.layer = layers::Identity({})})(Tensor::zeros({1, 2}));
              }),
              HasSubstr("'kernel' or 'embeddings'"));
  const SpectralNormalization recurrent({.layer = layers::GRU({.units = 2})});
  EXPECT_THROW(recurrent(Tensor::zeros({1, 2, 3})), ValueError);
  const SpectralNormalization layer = dense(1, {3, 0, 4, 5});
  const ReplicaScope replica(ReplicaContext{.replica = 1, .replicas = 2});
  EXPECT_THAT(
      message_of<NotImplementedError>([&] { layer(Tensor::zeros({1, 2}), {.training = true}); }),
      HasSubstr("train with one replica"));
}

TEST(SpectralNormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "SpectralNormalization",
                         .config = R"({"layer": {"class_name": "Dense", "config": {"units": 3}},
                                       "power_iterations": 2})",
                         .inputs = float_spec({2, 5}),
                         .output = float_spec({2, 3}),
                         .trainable_weights = 2,
                         .weights = 3});
}

}  // namespace keel::spectral_normalization_test
