// Embedding::quantize(): int8 tables.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/internal/quantizers.h>
#include <keel/layers/activation/activation.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/registry.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::quantized_embedding_test {

using layers::Embedding;
using testing::HasSubstr;
using testing_support::message_of;

const Tensor& ids() {
  static const Tensor kIds = Tensor::from<int64_t>({4, 0, 3, 3}, {2, 2});
  return kIds;
}

Embedding sines(EmbeddingOptions options = {}) {
  options.input_dim = 5;
  options.output_dim = 4;
  Embedding out(options);
  out->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  std::vector<float> values(20);
  for (int i = 0; i < 20; ++i) values[i] = static_cast<float>(0.5 * std::sin(1.7 * i + 0.3));
  out->embeddings().assign(Tensor::from(values, {5, 4}));
  return out;
}

TEST(QuantizedEmbeddingTest, VariablesAndPolicyAreThoseOfKeras) {
  const Embedding layer = sines();
  layer->quantize("int8");
  EXPECT_EQ(layer->dtype_policy().name(), "int8_from_float32");
  EXPECT_EQ(layer->dtype(), DType::kFloat32);
  const std::vector<Variable> weights = layer->weights();
  ASSERT_EQ(weights.size(), 2U);
  EXPECT_EQ(weights[0].name(), "embeddings");
  EXPECT_EQ(weights[0].spec(), (TensorSpec{.shape = {5, 4}, .dtype = DType::kInt8}));
  EXPECT_EQ(weights[1].name(), "embeddings_scale");
  EXPECT_EQ(weights[1].spec(), (TensorSpec{.shape = {5}, .dtype = DType::kFloat32}));
  EXPECT_TRUE(layer->trainable_variables().empty());
  EXPECT_EQ(weights[0], layer->embeddings());
  EXPECT_EQ(weights[1], layer->embeddings_scale());
}

TEST(QuantizedEmbeddingTest, MultipliesCodesByScales) {
  const Embedding layer = sines();
  const Tensor before = layer(ids());
  layer->quantize("int8");
  const Tensor after = layer(ids());
  EXPECT_EQ(after.shape(), Shape({2, 2, 4}));
  const std::vector<int> codes = {96, -110, -68, 127};  // computed by Keras for row 4
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(after.data<float>()[i], static_cast<float>(codes[i]) / 274.25357F, 1e-6);
  }
  for (int i = 0; i < 16; ++i) {
    EXPECT_NEAR(after.data<float>()[i], before.data<float>()[i], 0.5 / 254);
  }
  EXPECT_EQ(layer(ids().cast(DType::kInt32)).to_vector<float>(), after.to_vector<float>());
  EXPECT_EQ(layer(ids().cast(DType::kFloat32)).to_vector<float>(), after.to_vector<float>());
  EXPECT_THROW((void)layer(Tensor::from<int64_t>({5}, {1})), ValueError);
}

TEST(QuantizedEmbeddingTest, ErrorsChangeNothing) {
  const Embedding unbuilt({.input_dim = 5, .output_dim = 4});
  EXPECT_THROW(unbuilt->quantize("int8"), ValueError);
  const Embedding layer = sines();
  for (const char* mode : {"int4", "float8", ""}) EXPECT_THROW(layer->quantize(mode), ValueError);
  const Tensor before = layer->embeddings();
  Tensor odd = Tensor::full<float>({5, 4}, 1);
  odd.mutable_data<float>()[7] = std::nanf("");
  layer->embeddings().assign(odd);
  EXPECT_THROW(layer->quantize("int8"), ValueError);
  EXPECT_EQ(layer->embeddings().dtype(), DType::kFloat32);
  EXPECT_FALSE(layer->embeddings_scale());
  layer->embeddings().assign(before);
  layer->quantize("int8");
  EXPECT_THROW(layer->quantize("int8"), ValueError);
  EXPECT_EQ(layer->weights().size(), 2U);
  const Embedding wide = layers::Embedding({.input_dim = 2, .output_dim = 2, .dtype = "float64"});
  wide(Tensor::from<int64_t>({0}, {1}));
  EXPECT_THROW(wide->quantize("int8"), ValueError);
}

TEST(QuantizedEmbeddingTest, IsNotTrainable) {
  const Embedding embedding =
      sines({.embeddings_regularizer = Regularizer("l2"), .embeddings_constraint = "non_neg"});
  embedding->quantize("int8");
  EXPECT_TRUE(embedding->losses().empty());
  const Sequential model({.layers = {embedding, layers::Dense({.units = 1})}});
  model(ids());
  const std::vector<int8_t> before = embedding->embeddings().read().to_vector<int8_t>();
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0.1}), .loss = "mse"});
  model->fit(ids(), Tensor::zeros({2, 2, 1}), {.epochs = 2, .verbose = Verbose::kSilent});
  EXPECT_EQ(model->trainable_variables().size(), 2U) << "of the Dense layer";
  EXPECT_EQ(embedding->embeddings().read().to_vector<int8_t>(), before);
}

TEST(QuantizedEmbeddingTest, KeepsItsMask) {
  const Embedding layer = sines({.mask_zero = true});
  layer->quantize("int8");
  EXPECT_EQ(layer(ids()).mask().to_vector<bool>(), (std::vector<bool>{true, false, true, true}));
}

TEST(QuantizedEmbeddingTest, ItsConfigHasTheQuantizedPolicy) {
  const Embedding layer = sines();
  layer->quantize("int8");
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(to_json(config["config"]["dtype"]),
            R"({"module": "keras.dtype_policies", "class_name": "QuantizedDTypePolicy", )"
            R"("config": {"mode": "int8", "source_name": "float32"}, "registered_name": null})");
  const LayerHandle<Layer> same = layers::deserialize(config);
  EXPECT_EQ(same->dtype_policy(), layer->dtype_policy());
  same->build(Specs(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64}));
  ASSERT_EQ(same->weights().size(), 2U);
  EXPECT_EQ(same->weights()[0].spec(), layer->embeddings().spec());
  EXPECT_EQ(same->weights()[1].spec(), layer->embeddings_scale().spec());
  EXPECT_THROW(dynamic_cast<EmbeddingLayer&>(*same).quantize("int8"), ValueError);
}

TEST(QuantizedEmbeddingTest, OtherLayersRejectThePolicy) {
  EXPECT_THAT(message_of<NotImplementedError>(
                  [&] { layers::PReLU({.name = "head", .dtype = "int8_from_float32"}); }),
              HasSubstr("PReLU 'head'"));
}

TEST(QuantizedEmbeddingTest, ScalesArePositiveAndFinite) {
  const Embedding layer = sines();
  EXPECT_EQ(layer->state_entries().size(), 1U);
  layer->quantize("int8");
  const std::vector<StateEntry> entries = layer->state_entries();
  ASSERT_EQ(entries.size(), 2U);
  for (const float odd : {0.0F, -1.0F, std::nanf(""), HUGE_VALF}) {
    const Tensor scales = Tensor::from<float>({1, 1, 1, odd, 1}, {5});
    EXPECT_THROW(entries[1].check(scales), ValueError) << odd;
    EXPECT_THROW(entries[1].set(scales), ValueError) << odd;
  }
  EXPECT_NEAR(layer->embeddings_scale().read().data<float>()[3], 264.26596F, 3e-5);
  entries[1].set(Tensor::full<float>({5}, 2));
  EXPECT_EQ(layer->embeddings_scale().read().data<float>()[3], 2);
}

}  // namespace keel::quantized_embedding_test
