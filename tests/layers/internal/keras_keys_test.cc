#include <keel/layers/internal/keras_keys.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"

namespace keel::keras_keys_test {

using testing::HasSubstr;
using testing_support::message_of;

LayerHandle<Layer> read(const char* class_name, const char* config) {
  return layers::deserialize(
      Config::dict({{"class_name", class_name}, {"config", parse_json(config)}}));
}

// A layer as Keras 3.16 writes it.
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

// A layer as Keras 2.4 writes it.
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

// Lookup layers as Keras 3.15 writes them. "salt" and "oov_method" are new in 3.14.
TEST(KerasKeysTest, LookupsOfKeras314RoundTrip) {
  const auto read_lookup = [](const char* class_name, const char* special) {
    return read(class_name,
                str(R"({"name": "lookup", "trainable": true, "dtype": {"module": "keras",
        "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null},
        "invert": false, "max_tokens": null, "num_oov_indices": 1, "mask_token": null,
        "output_mode": "int", "sparse": false, "pad_to_max_tokens": false, "idf_weights": null,
        "vocabulary_size": 3, )",
                    special, R"(, "oov_method": "floormod", "salt": null})")
                    .c_str());
  };
  const auto strings = read_lookup(
      "StringLookup", R"("oov_token": "[UNK]", "vocabulary": ["a", "b"], "encoding": "utf-8")");
  EXPECT_EQ(strings(Tensor::from<std::string>({"b", "z"}, {2})).to_vector<int64_t>(),
            (std::vector<int64_t>{2, 0}));
  const auto integers = read_lookup(
      "IntegerLookup", R"("oov_token": -1, "vocabulary": [7, 8], "vocabulary_dtype": "int64")");
  EXPECT_EQ(integers(Tensor::from<int64_t>({8, 1}, {2})).to_vector<int64_t>(),
            (std::vector<int64_t>{2, 0}));
  for (const auto& layer : {strings, integers}) {
    const Config config = layers::serialize(*layer)["config"];
    EXPECT_EQ(config.find("salt"), nullptr);
    EXPECT_EQ(config.find("oov_method"), nullptr);
  }
}

// Keys and values of Keras 1 and 2 that Keras 3 has dropped or renamed.
TEST(KerasKeysTest, OldKeysWithTheirDefaultsAndOldNamesAreRead) {
  const char* const kBias = R"("use_bias": true, "bias_regularizer": null, "bias_constraint": null,
      "activity_regularizer": null, "activation": "linear", "data_format": "channels_last")";
  const auto conv =
      read("SeparableConv1D",
           str(R"({"name": "c", "filters": 2, "kernel_size": [3], "strides": [1], "padding": "same",
          "dilation_rate": [1], "groups": 1, "depth_multiplier": 1, "depthwise_regularizer": null,
          "pointwise_regularizer": null, "depthwise_constraint": null, "pointwise_constraint": null,
          "kernel_initializer": {"class_name": "GlorotUniform", "config": {"seed": null}},
          "kernel_regularizer": null, "kernel_constraint": null, )",
               kBias, "}")
               .c_str());
  EXPECT_EQ(conv(Tensor::zeros({1, 4, 3})).shape(), Shape({1, 4, 2}));
  EXPECT_NO_THROW(
      read("DepthwiseConv1D",
           str(R"({"name": "c", "kernel_size": [3], "groups": 1, )", kBias, "}").c_str()));
  EXPECT_NO_THROW(read("Attention", R"({"name": "a", "causal": false, "use_scale": false})"));
  EXPECT_THROW(read("Attention", R"({"name": "a", "causal": true})"), NotImplementedError);
  const auto encoding =
      read("CategoryEncoding", R"({"name": "e", "max_tokens": 3, "output_mode": "binary"})");
  EXPECT_EQ(encoding(Tensor::from<int64_t>({2, 0}, {1, 2})).to_vector<float>(),
            (std::vector<float>{1, 0, 1}));
  const auto bins = read("Discretization", R"({"name": "b", "bins": [0.0, 1.0]})");
  EXPECT_EQ(bins(Tensor::from<float>({-1, .5, 2}, {3})).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 1, 2}));
  const auto input =
      read("InputLayer", R"({"name": "i", "batch_input_shape": [null, 2], "input_dtype": "int32",
                             "sparse": false})");
  EXPECT_EQ(dynamic_cast<const InputLayer&>(*input).spec().dtype, DType::kInt32);
}

// A null value has no effect, so it is accepted even for an unknown key.
TEST(KerasKeysTest, NullsAreAccepted) {
  const auto layer = read("Dense", R"({"name": "d", "units": 2, "use_bias": null, "dtype": null,
      "activation": null, "kernel_regularizer": null, "of_a_later_version": null})");
  EXPECT_EQ(layer(Tensor::zeros({1, 2})).shape(), Shape({1, 2}));
  EXPECT_EQ(layer->weights().size(), 2U) << "the default of use_bias";
  EXPECT_THROW(read("Dense", R"({"name": "d", "units": 2, "of_a_later_version": 1})"), ValueError);
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

TEST(KerasKeysTest, InputLayersAreWrittenForBothDialects) {
  const InputLayer input({.batch_shape = {kUnknown, 3}, .name = "KerasKeysTest_x"});
  EXPECT_EQ(to_json(layers::serialize(input)),
            R"({"class_name": "InputLayer", "config": {"batch_input_shape": [null, 3], )"
            R"("dtype": "float32", "name": "KerasKeysTest_x"}})");
}

TEST(KerasKeysTest, UnsupportedOptionsAreNamed) {
  const std::string message = message_of<NotImplementedError>([&] {
    read("Embedding", R"({"name": "table", "input_dim": 3, "output_dim": 1, "lora_rank": 4})");
  });
  EXPECT_THAT(message, HasSubstr("table"));
  EXPECT_THAT(message, HasSubstr("lora_rank"));
  EXPECT_THROW(read("BatchNormalization", R"({"virtual_batch_size": 4})"), NotImplementedError);
}

// Older versions of Keras reject them.
TEST(KerasKeysTest, NewKeysAreWrittenIfTheyHaveAnEffect) {
  const auto written = [](const char* class_name, const char* config) {
    return layers::serialize(*read(class_name, config))["config"];
  };
  const Config usual = written("BatchNormalization", R"({"renorm_momentum": 0.5})");
  for (const char* key : {"synchronized", "renorm", "renorm_clipping", "renorm_momentum"}) {
    EXPECT_EQ(usual.find(key), nullptr) << key;
  }
  const Config renorm =
      written("BatchNormalization", R"({"renorm": true, "renorm_momentum": 0.5})");
  EXPECT_EQ(renorm["renorm"], Config(true));
  EXPECT_EQ(renorm["renorm_momentum"], Config(0.5));
  const Config heads =
      written("MultiHeadAttention", R"({"num_heads": 1, "key_dim": 2, "sliding_window": 3})");
  EXPECT_EQ(heads["sliding_window"], Config(3));
  EXPECT_EQ(heads.find("use_gate"), nullptr);
  EXPECT_EQ(written("Dense", R"({"units": 1})").find("quantization_config"), nullptr);
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

TEST(KerasKeysTest, UserClassesKeepTheirKeys) {
  const Config config = Config::dict({{"sparse", true}, {"kernel_regularizer", "mine"}});
  EXPECT_EQ(from_keras("Mine", "", config), config);
}

TEST(KerasKeysTest, PackagedNamesOfKerasRsAreRead) {
  EXPECT_EQ(read("keras_rs>DotInteraction", "{}")->class_name(), "DotInteraction");
}

TEST(KerasKeysTest, TheTrainableFlagIsWritten) {
  const layers::Dense dense({.units = 1});
  dense->set_trainable(false);
  EXPECT_FALSE(layers::deserialize(layers::serialize(*dense))->trainable());
}

}  // namespace keel::keras_keys_test
