// A small model with convolutions in the files of Keras, and in a serving plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/convolution/conv.h>
#include <keel/layers/convolution/conv_transpose.h>
#include <keel/layers/convolution/depthwise_conv.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/padding.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/reshaping/up_sampling.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::convolution_files_test {

using testing_support::expect_same_bits;
using testing_support::normal;
using testing_support::TemporaryFolder;

// Classifies images of 12 x 10 pixels with 3 channels.
Functional image_model() {
  const std::vector<LayerHandle<Layer>> all = {
      layers::ZeroPadding2D({.padding = {1, 0}, .name = "pad"}),
      layers::Conv2D({.filters = 6,
                      .kernel_size = 3,
                      .strides = {2, 1},
                      .activation = "relu",
                      .name = "conv"}),
      layers::MaxPooling2D({.name = "max"}),
      layers::DepthwiseConv2D({.kernel_size = 2, .padding = "same", .name = "depth"}),
      layers::SeparableConv2D({.filters = 4, .kernel_size = 2, .name = "separable"}),
      layers::UpSampling2D({.interpolation = "bilinear", .name = "up"}),
      layers::Conv2DTranspose(
          {.filters = 5, .kernel_size = 3, .strides = 2, .padding = "same", .name = "transpose"}),
      layers::Cropping2D({.cropping = 1, .name = "crop"}),
      layers::AveragePooling2D({.pool_size = {2, 1}, .name = "average"}),
      layers::AdaptiveAveragePooling2D({.output_size = 2, .name = "adaptive"}),
      layers::Flatten({.name = "flat"}),
      layers::Dense({.units = 3, .activation = "softmax", .name = "classes"})};
  const Tensor image = layers::input({.shape = {12, 10, 3}, .name = "image"});
  Tensor y = image;
  for (const auto& layer : all) y = layer(y);
  return Functional({.inputs = image, .outputs = y, .name = "images"});
}

TEST(ConvolutionFilesTest, ModelsKeepTheirPredictions) {
  const TemporaryFolder folder;
  const Functional model = image_model();
  const Tensor x = normal({5, 12, 10, 3}, 1);
  const Tensor expected = model(x);
  ASSERT_EQ(expected.shape(), Shape({5, 3}));
  for (const char* name : {"model.keras", "model.h5"}) {
    const std::string path = folder / name;
    save_model(model, path);
    const ModelHandle loaded = load_model(path);
    expect_same_bits(loaded(x), expected);
    const ServingPlan plan(loaded);
    expect_same_bits(plan(x).tensor(), expected);
  }
}

TEST(ConvolutionFilesTest, WeightsHaveTheOrderOfKeras) {
  std::vector<std::string> names;
  for (const Variable& weight : image_model()->weights()) {
    names.push_back(weight.name() + " " + str(weight.shape()));
  }
  EXPECT_THAT(names, testing::ElementsAre("kernel (3, 3, 3, 6)", "bias (6,)", "kernel (2, 2, 6, 1)",
                                          "bias (6,)", "depthwise_kernel (2, 2, 6, 1)",
                                          "pointwise_kernel (1, 1, 6, 4)", "bias (4,)",
                                          "kernel (3, 3, 5, 4)", "bias (5,)", "kernel (20, 3)",
                                          "bias (3,)"));
}

// Configs as Keras 2 writes them, with keys that Keras 3 has dropped.
TEST(ConvolutionFilesTest, ConfigsOfKeras2AreRead) {
  const auto read = [](const char* class_name, const char* config) {
    return layers::deserialize(
        Config::dict({{"class_name", class_name}, {"config", parse_json(config)}}));
  };
  EXPECT_NO_THROW(read("Conv2DTranspose",
                       R"({"filters": 2, "kernel_size": [3, 3], "groups": 1,
                           "output_padding": null, "batch_input_shape": [null, 4, 4, 1]})"));
  EXPECT_NO_THROW(read("DepthwiseConv2D", R"({"kernel_size": [3, 3], "groups": 1})"));
  EXPECT_NO_THROW(read("SeparableConv2D",
                       R"({"filters": 2, "kernel_size": [3, 3], "groups": 1,
                           "kernel_initializer": {"class_name": "GlorotUniform", "config": {}},
                           "kernel_regularizer": null, "kernel_constraint": null})"));
  EXPECT_THROW(read("DepthwiseConv2D", R"({"kernel_size": 3, "groups": 2})"), NotImplementedError);
}

}  // namespace keel::convolution_files_test
