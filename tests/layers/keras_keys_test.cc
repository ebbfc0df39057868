#include "layers/keras_keys.h"

#include "gtest/gtest.h"

#include "layers/core/dense.h"
#include "layers/input_layer.h"
#include "layers/registry.h"

namespace keel::keras_keys_test {

LayerHandle<Layer> read(const char* class_name, const char* config) {
  return layers::deserialize(
      Config::dict({{"class_name", class_name}, {"config", parse_json(config)}}));
}

// As Keras 3.16 writes a layer.
TEST(KerasKeysTest, ConfigsOfKeras3AreRead) {
  const auto layer = read("Dense", R"({
      "name": "head", "trainable": true,
      "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"},
                "registered_name": null},
      "units": 3, "activation": "linear", "use_bias": true,
      "kernel_initializer": {"module": "keras.initializers", "class_name": "GlorotUniform",
          "config": {"seed": null, "input_axes": null, "output_axes": null},
          "registered_name": null},
      "bias_initializer": {"module": "keras.initializers", "class_name": "Zeros", "config": {},
          "registered_name": null},
      "kernel_regularizer": null, "bias_regularizer": null, "kernel_constraint": null,
      "bias_constraint": null, "quantization_config": null})");
  EXPECT_EQ(layer->name(), "head");
  EXPECT_EQ(layer(Tensor::zeros({1, 2})).shape(), Shape({1, 3}));
}

// As Keras 2.4 writes one.
TEST(KerasKeysTest, ConfigsOfKeras2AreRead) {
  const auto layer = read("BatchNormalization", R"({
      "name": "bn", "trainable": true, "dtype": "float32", "batch_input_shape": [null, 4],
      "axis": [1], "momentum": 0.99, "epsilon": 0.001, "center": true, "scale": true,
      "beta_initializer": {"class_name": "Zeros", "config": {}},
      "gamma_initializer": {"class_name": "Ones", "config": {}},
      "moving_mean_initializer": {"class_name": "Zeros", "config": {}},
      "moving_variance_initializer": {"class_name": "Ones", "config": {}},
      "beta_regularizer": null, "gamma_regularizer": null, "beta_constraint": null,
      "gamma_constraint": null})");
  EXPECT_EQ(layer(Tensor::zeros({1, 4})).shape(), Shape({1, 4}));
}

TEST(KerasKeysTest, InputLayersOfBothDialectsAreRead) {
  for (const char* key : {"batch_shape", "batch_input_shape"}) {
    const Config config =
        parse_json(str(R"({"name": "x", "dtype": "int32", "sparse": false, "ragged": false, ")",
                       key, R"(": [null, 3]})"));
    const auto layer =
        layers::deserialize(Config::dict({{"class_name", "InputLayer"}, {"config", config}}));
    const auto& input = dynamic_cast<const InputLayer&>(*layer);
    EXPECT_EQ(input.spec(), (TensorSpec{.shape = {kUnknown, 3}, .dtype = DType::kInt32})) << key;
  }
}

TEST(KerasKeysTest, InputLayersAreWrittenForBoth) {
  const InputLayer input({.batch_shape = {kUnknown, 3}, .name = "KerasKeysTest_x"});
  EXPECT_EQ(to_json(layers::serialize(input)),
            R"({"class_name": "InputLayer", "config": {"batch_input_shape": [null, 3], )"
            R"("dtype": "float32", "name": "KerasKeysTest_x"}})");
}

TEST(KerasKeysTest, WhatIsNotOfferedIsNamed) {
  try {
    read("Dense", R"({"name": "head", "units": 1, "lora_rank": 4})");
    FAIL() << "no error";
  } catch (const NotImplementedError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("head"), std::string::npos) << message;
    EXPECT_NE(message.find("lora_rank"), std::string::npos) << message;
  }
  EXPECT_THROW(read("BatchNormalization", R"({"synchronized": true})"), NotImplementedError);
  EXPECT_THROW(read("CategoryEncoding", R"({"num_tokens": 2, "sparse": true})"),
               NotImplementedError);
}

TEST(KerasKeysTest, LambdaIsRefusedByName) {
  try {
    read("Lambda", R"({"name": "twice", "function": ["4wEAAA==", null, null]})");
    FAIL() << "no error";
  } catch (const NotImplementedError& error) {
    EXPECT_NE(std::string(error.what()).find("Lambda twice"), std::string::npos) << error.what();
  }
}

TEST(KerasKeysTest, NamesThatOnlyKeras2HasAreRead) {
  const auto thresholded = read("ThresholdedReLU", R"({"name": "t", "theta": 0.5})");
  EXPECT_EQ(thresholded->class_name(), "ReLU");
  EXPECT_EQ(thresholded(Tensor::from<float>({0.25, 2}, {2})).to_vector<float>(),
            (std::vector<float>{0, 2}));
  const auto leaky = read("LeakyReLU", R"({"name": "l", "alpha": 0.5})");
  EXPECT_EQ(leaky->get_config()["negative_slope"].number(), 0.5);
}

TEST(KerasKeysTest, OtherUnknownKeysAreErrors) {
  EXPECT_THROW(read("Dense", R"({"units": 1, "unit": 1})"), ValueError);
  EXPECT_THROW(read("Dense", R"({"units": "one"})"), TypeError);
  EXPECT_THROW(read("Dence", R"({"units": 1})"), ValueError);
}

TEST(KerasKeysTest, ClassesOfOnesOwnKeepTheirKeys) {
  const Config config = Config::dict({{"sparse", true}, {"kernel_regularizer", "mine"}});
  EXPECT_EQ(from_keras("Mine", config), config);
}

TEST(KerasKeysTest, PackagedNamesOfKerasRsAreRead) {
  EXPECT_EQ(read("keras_rs>DotInteraction", "{}")->class_name(), "DotInteraction");
}

TEST(KerasKeysTest, ALayerIsWrittenAsTrainableAsItIs) {
  const layers::Dense dense({.units = 1});
  dense->set_trainable(false);
  EXPECT_FALSE(layers::deserialize(layers::serialize(*dense))->trainable());
}

}  // namespace keel::keras_keys_test
