// Tests layers/core/projection.cc and kernel_quantization.cc: quantize() and enable_lora() of Dense
// and EinsumDense.
#include <keel/layers/core/projection.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::projection_test {

using layers::Dense;
using layers::EinsumDense;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using Values = std::vector<float>;

Tensor some(const Shape& shape, uint64_t seed) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  RandomStream{.seed = seed}.normal(out.mutable_data<float>(), 0, 0, 1);
  return out;
}

std::vector<std::string> names_of(const Layer& layer) {
  std::vector<std::string> out;
  for (const StateEntry& entry : layer.state_entries()) out.push_back(entry.name);
  return out;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double out = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    out = std::max(out, std::abs(double{a.data<float>()[i]} - b.data<float>()[i]));
  }
  return out;
}

// int8 has steps of 1/127 of the largest weight of a column, int4 of 2/15 of its range.
TEST(ProjectionLayerTest, QuantizedLayersStayCloseToTheirOriginals) {
  for (const char* mode : {"int8", "int4"}) {
    const double tolerance = mode == std::string("int8") ? 0.15 : 1.5;
    const Tensor x = some({5, 3, 16}, 1);
    const Dense dense({.units = 6, .activation = "relu", .bias_initializer = "ones"});
    const EinsumDense einsum({.equation = "abc,cde->abed",
                              .output_shape = {3, 2, 4},
                              .bias_axes = "e",
                              .bias_initializer = "ones"});
    for (const LayerHandle<ProjectionLayer>& layer :
         {LayerHandle<ProjectionLayer>(dense), LayerHandle<ProjectionLayer>(einsum)}) {
      const Tensor before = layer(x);
      layer->quantize(mode);
      const Tensor after = layer(x);
      EXPECT_LT(largest_difference(before, after), tolerance) << layer->name() << mode;
      EXPECT_GT(largest_difference(before, after), 0) << layer->name() << mode;
      EXPECT_EQ(layer->trainable_variables().size(), 1U);
    }
  }
}

TEST(ProjectionLayerTest, WeightsHaveTheNamesAndTheOrderOfKeras) {
  const Dense dense({.units = 3});
  dense(Tensor::zeros({1, 4}));
  dense->quantize("int8");
  EXPECT_THAT(names_of(*dense), ElementsAre("kernel", "bias", "kernel_scale"));
  EXPECT_EQ(dense->kernel().dtype(), DType::kInt8);
  EXPECT_EQ(dense->kernel_scale().shape(), Shape({3}));
  const Dense packed({.units = 3});
  packed(Tensor::zeros({1, 4}));
  packed->quantize({.mode = "int4", .quantize_inputs = false, .block_size = 3});
  EXPECT_THAT(names_of(*packed),
              ElementsAre("kernel", "bias", "kernel_scale", "zero_point", "g_idx"));
  EXPECT_EQ(packed->kernel().shape(), Shape({4, 2}));
  EXPECT_EQ(packed->kernel_scale().shape(), Shape({2, 3}));
  EXPECT_EQ(packed->dtype_policy().name(), "int4/3_from_float32");
}

TEST(ProjectionLayerTest, ConfigsAreThoseOfKeras) {
  const Dense dense({.units = 3, .name = "d"});
  dense(Tensor::zeros({1, 4}));
  const auto written = [&] { return layers::serialize(*dense)["config"]; };
  EXPECT_EQ(written().find("quantization_config"), nullptr) << "older Keras has none";
  EXPECT_EQ(written().find("lora_rank"), nullptr);
  dense->quantize("int8");
  EXPECT_EQ(to_json(written()["dtype"]["config"]), R"({"mode": "int8", "source_name": "float32"})");
  EXPECT_EQ(to_json(written()["quantization_config"]),
            R"({"module": "keras.quantizers", "class_name": "Int8QuantizationConfig", )"
            R"("config": {"weight_quantizer": null, "activation_quantizer": {"module": )"
            R"("keras.quantizers", "class_name": "AbsMaxQuantizer", "config": {"value_range": )"
            R"([-127, 127], "epsilon": 1e-07, "output_dtype": "int8", "axis": [-1]}, )"
            R"("registered_name": null}}, "registered_name": null})");
  dense->enable_lora(2, 8);
  EXPECT_EQ(to_json(written()["lora_rank"]), "2");
  EXPECT_EQ(to_json(written()["lora_alpha"]), "8");
  const LayerHandle<Layer> same = layers::deserialize(layers::serialize(*dense));
  same->build({TensorSpec{{kUnknown, 4}, DType::kFloat32}});
  EXPECT_EQ(to_json(layers::serialize(*same)), to_json(layers::serialize(*dense)));
  EXPECT_EQ(names_of(*same), names_of(*dense));
}

TEST(ProjectionLayerTest, LoraAddsAProductAndFreezesTheKernel) {
  const Tensor x = some({5, 4}, 2);
  for (const bool quantized : {false, true}) {
    const Dense dense({.units = 3});
    const EinsumDense einsum({.equation = "ab,bcd->adc", .output_shape = {3, 2}});
    // Its kernel's last axis is summed over.
    const EinsumDense last({.equation = "ab,cb->ac", .output_shape = 3});
    for (const LayerHandle<ProjectionLayer>& layer :
         {LayerHandle<ProjectionLayer>(dense), LayerHandle<ProjectionLayer>(einsum),
          LayerHandle<ProjectionLayer>(last)}) {
      layer(x);
      if (quantized) layer->quantize({.quantize_inputs = false});
      const Tensor before = layer(x);
      layer->enable_lora(2, 6.0);
      EXPECT_LT(largest_difference(layer(x), before), 1e-6) << "lora_kernel_b starts at 0";
      layer->lora_kernel_b().assign(some(layer->lora_kernel_b().shape(), 3));
      const Tensor adapted = layer(x);
      EXPECT_GT(largest_difference(adapted, before), 0.1);
      // 6 / 2 times the product is a part of the kernel that files hold.
      const StateEntry kernel = layer->state_entries()[0];
      kernel.set(kernel.get());
      EXPECT_EQ(layer->lora_kernel_b().read().to_vector<float>(),
                Values(layer->lora_kernel_b().read().size(), 0));
      if (!quantized) {
        EXPECT_LT(largest_difference(layer(x), adapted), 1e-5);
      }
      GradientTape tape;
      const Tensor y = ops::sum(ops::square(layer(x)));
      const auto gradients = tape.gradient(y, layer->trainable_variables());
      EXPECT_EQ(gradients.size(), layer == LayerHandle<ProjectionLayer>(dense) ? 3U : 2U);
      for (const Gradient& g : gradients) EXPECT_TRUE(g);
    }
  }
}

TEST(ProjectionLayerTest, LoraOptionsTakeEffectWhenTheLayerIsBuilt) {
  const Dense layer({.units = 3, .lora_rank = 2, .lora_alpha = 1});
  layer(Tensor::zeros({1, 4}));
  EXPECT_EQ(layer->lora_kernel_a().shape(), Shape({4, 2}));
  EXPECT_EQ(layer->lora_kernel_b().shape(), Shape({2, 3}));
  EXPECT_FALSE(layer->kernel().trainable());
  EXPECT_EQ(layer->trainable_variables().size(), 3U);
}

TEST(ProjectionLayerTest, QuantizedAndAdaptedModelsSurviveATripThroughFiles) {
  const TemporaryFolder folder;
  const Tensor x = some({5, 2, 4}, 4);
  for (const std::string mode : {"int8", "int4", "lora"}) {
    const Dense dense({.units = 6});
    const EinsumDense einsum({.equation = "abc,cd->abd", .output_shape = {2, 3}, .bias_axes = "d"});
    const Sequential model(
        {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 2, 4}}), dense, einsum}});
    model(Tensors(x));
    for (const LayerHandle<ProjectionLayer>& layer :
         {LayerHandle<ProjectionLayer>(dense), LayerHandle<ProjectionLayer>(einsum)}) {
      if (mode != "lora") {
        layer->quantize(mode);
      } else {
        layer->enable_lora(1);
        layer->lora_kernel_b().assign(some(layer->lora_kernel_b().shape(), 5));
      }
    }
    const Tensor before = model(Tensors(x)).tensor();
    save_model(model, folder / "model.keras");
    const ModelHandle again = load_model(folder / "model.keras");
    EXPECT_LT(largest_difference(again(Tensors(x)).tensor(), before), mode == "lora" ? 1e-5 : 1e-30)
        << mode;
  }
}

TEST(ProjectionLayerTest, RejectsInvalidUses) {
  const Dense unbuilt({.units = 3});
  EXPECT_THROW(unbuilt->quantize("int8"), ValueError);
  EXPECT_THROW(unbuilt->enable_lora(2), ValueError);
  const Dense layer({.units = 3});
  layer(Tensor::zeros({1, 4}));
  EXPECT_THROW(layer->enable_lora(0), ValueError);
  for (const char* mode : {"float8", "gptq", ""}) EXPECT_THROW(layer->quantize(mode), ValueError);
  EXPECT_THROW(layer->quantize({.mode = "int4", .block_size = 0}), ValueError);
  layer->quantize("int8");
  EXPECT_THROW(layer->quantize("int8"), ValueError);
  layer->enable_lora(1);
  EXPECT_THROW(layer->enable_lora(1), ValueError);
  EXPECT_THROW(Dense({.units = 3, .lora_rank = 0}), ValueError);
  EXPECT_THROW(Dense({.units = 3, .kernel_constraint = "non_neg", .lora_rank = 1}), ValueError);
  const Dense wide({.units = 3, .dtype = DType::kFloat64});
  wide(Tensor::zeros({1, 4}, DType::kFloat64));
  EXPECT_THROW(wide->quantize("int8"), ValueError);
}

TEST(KernelQuantizationTest, OtherQuantizersAreRejectedByName) {
  const auto message = [](const char* json) {
    return message_of<NotImplementedError>([&] {
      KernelQuantization v;
      decode(parse_json(json), v);
    });
  };
  EXPECT_THAT(message(R"({"class_name": "GPTQConfig", "config": {}})"),
              HasSubstr("'GPTQConfig' is not supported"));
  EXPECT_THAT(message(R"({"class_name": "Int8QuantizationConfig", "config": {"weight_quantizer":
                      {"class_name": "AbsMaxQuantizer", "config": {"epsilon": 0.5}}}})"),
              HasSubstr("weight_quantizer must be an AbsMaxQuantizer"));
  KernelQuantization v;
  decode(parse_json(R"({"class_name": "Int4QuantizationConfig", "config":
                     {"weight_quantizer": null, "activation_quantizer": null, "block_size": null}})"),
         v);
  EXPECT_EQ(v.mode, "int4");
  EXPECT_EQ(v.block_size, -1);
  EXPECT_FALSE(v.quantize_inputs);
}

}  // namespace keel::projection_test
