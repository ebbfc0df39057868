// Tests layers/image/resizing.cc and center_crop.cc.
#include <keel/layers/image/resizing.h>

#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::resizing_test {

using layers::CenterCrop;
using layers::Resizing;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::message_of;

TEST(ResizingTest, TakesOneImageOrABatch) {
  const Resizing layer({.height = 1, .width = 2, .interpolation = "nearest"});
  const std::vector<float> values = {1, 2, 3, 4};
  const Tensor one = layer(floats(values, {2, 2, 1}));
  EXPECT_EQ(one.shape(), Shape({1, 2, 1}));
  EXPECT_EQ(one.to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(layer(floats(values, {1, 2, 2, 1})).to_vector<float>(), one.to_vector<float>());
}

TEST(ResizingTest, IntegersAreRoundedAndKeepTheirDtype) {
  const Tensor x = Tensor::from<uint8_t>({0, 255, 10, 20}, {1, 2, 2, 1});
  const Tensor y = Resizing({.height = 2, .width = 4, .interpolation = "bicubic"})(x);
  EXPECT_EQ(y.dtype(), DType::kUint8);
  // The cubic exceeds both ends of the range.
  EXPECT_EQ(y.to_vector<uint8_t>()[0], 0);
  EXPECT_EQ(y.to_vector<uint8_t>()[3], 255);
}

TEST(ResizingTest, MasksKeepTheirClasses) {
  const Resizing layer({.height = 4, .width = 4});
  const Tensor masks = Tensor::from<int32_t>({0, 7, 7, 0}, {1, 2, 2, 1});
  const Tensors out = layer(Tensors{{"images", Tensor::zeros({1, 2, 2, 3})},
                                    {"labels", floats({5})},
                                    {"segmentation_masks", masks}});
  EXPECT_EQ(out["images"].tensor().shape(), Shape({1, 4, 4, 3}));
  EXPECT_EQ(out["labels"].tensor().to_vector<float>(), std::vector<float>{5});
  EXPECT_EQ(out["segmentation_masks"].tensor().to_vector<int32_t>(),
            (std::vector<int32_t>{0, 0, 7, 7, 0, 0, 7, 7, 7, 7, 0, 0, 7, 7, 0, 0}));
}

TEST(ResizingTest, UnknownSizesBecomeKnown) {
  const Resizing layer({.height = 4, .width = 5, .data_format = "channels_first"});
  EXPECT_EQ(layer(layers::input({.shape = {3, kUnknown, kUnknown}})).shape(),
            Shape({kUnknown, 3, 4, 5}));
}

TEST(ResizingTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      Resizing({.height = 2, .width = 3, .antialias = true, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({1, 3, 2, 2}));
  testing_support::expect_gradients_are_slopes(
      CenterCrop({.height = 3, .width = 1, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({1, 2, 3, 2}));
}

TEST(ResizingTest, ErrorsNameTheLayerAndTheOption) {
  EXPECT_THAT(message_of<ValueError>([] { Resizing({.height = 2}); }), HasSubstr("positive"));
  EXPECT_THAT(
      message_of<ValueError>([] { Resizing({.height = 2, .width = 2, .interpolation = "area"}); }),
      HasSubstr("interpolation must be one of nearest, bilinear"));
  EXPECT_THROW(Resizing({.height = 2, .width = 2, .fill_mode = "wrap"}), ValueError);
  EXPECT_THROW(Resizing({.height = 2, .width = 2, .data_format = "last"}), ValueError);
  EXPECT_THROW(
      Resizing(
          {.height = 2, .width = 2, .crop_to_aspect_ratio = true, .pad_to_aspect_ratio = true}),
      ValueError);
  const Resizing layer({.height = 2, .width = 2, .name = "small"});
  EXPECT_THAT(message_of<ValueError>([&] { layer(Tensor::zeros({2, 2})); }),
              HasSubstr("Resizing small: images must have rank 3 or 4"));
  EXPECT_THAT(
      message_of<ValueError>([&] { layer(Tensors{{"pictures", Tensor::zeros({2, 2, 1})}}); }),
      HasSubstr("'images'"));
  EXPECT_THROW(layer(Tensors{{"images", Tensor::zeros({1, 2, 2, 1})},
                             {"bounding_boxes", Tensor::zeros({1, 1, 4})}}),
               NotImplementedError);
}

TEST(CenterCropTest, CutsTheCenter) {
  const Tensor y = CenterCrop({.height = 1, .width = 2})(
      Tensor::from<int32_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 3, 4, 1}));
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{6, 7}));
}

TEST(CenterCropTest, SmallImagesAreResized) {
  const CenterCrop layer({.height = 4, .width = 2});
  EXPECT_EQ(layer(Tensor::zeros({2, 3, 5, 1})).shape(), Shape({2, 4, 2, 1}));
  EXPECT_THROW(CenterCrop({.height = 4}), ValueError);
}

TEST(ResizingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Resizing",
                         .config = R"({"height": 3, "width": 2, "interpolation": "nearest"})",
                         .inputs = float_spec({2, 4, 4, 1}),
                         .output = float_spec({2, 3, 2, 1})});
  expect_layer_contract({.class_name = "CenterCrop",
                         .config = R"({"height": 3, "width": 2, "data_format": "channels_first"})",
                         .inputs = float_spec({2, 1, 4, 4}),
                         .output = float_spec({2, 1, 3, 2})});
}

}  // namespace keel::resizing_test
