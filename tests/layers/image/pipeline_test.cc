#include <keel/layers/image/pipeline.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/image/random_color.h>
#include <keel/layers/image/resizing.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/registry.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::pipeline_test {

using layers::MaxNumBoundingBoxes;
using layers::Pipeline;
using testing_support::expect_layer_contract;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::int_spec;

TEST(PipelineTest, AppliesTheLayersInOrder) {
  const Pipeline pipeline(
      {.layers = {layers::RandomInvert({.factor = {1, 1}}), layers::Rescaling({.scale = 2})}});
  const Tensor x = floats({5, 10, 15}, {1, 1, 3});
  EXPECT_EQ(pipeline(x).to_vector<float>(), (std::vector<float>{10, 20, 30}));
  EXPECT_EQ(pipeline(x, {.training = true}).to_vector<float>(),
            (std::vector<float>{500, 490, 480}));
}

TEST(PipelineTest, HasTheWeightsOfItsLayers) {
  const layers::Dense dense({.units = 3});
  const Pipeline pipeline({.layers = {layers::Rescaling({}), dense}});
  EXPECT_EQ(pipeline(layers::input({.shape = {2}})).shape(), Shape({kUnknown, 3}));
  EXPECT_EQ(pipeline->weights().size(), 2);
  EXPECT_EQ(pipeline->sublayer_attributes(),
            (std::vector<std::string>{"_pipeline_layers/rescaling", "_pipeline_layers/dense"}));
  expect_same_bits(pipeline(floats({1, 2}, {1, 2})), dense(floats({1, 2}, {1, 2})));
}

TEST(PipelineTest, ConfigsHaveTheLayersAndTheName) {
  const Pipeline pipeline(
      {.layers = {layers::CenterCrop({.height = 1, .width = 2})}, .name = "prepare"});
  const Config config = pipeline->get_config();
  EXPECT_EQ(config.entries().size(), 2);
  const auto copy = layers::deserialize(layers::serialize(*pipeline));
  EXPECT_EQ(to_json(copy->get_config()), to_json(config));
  EXPECT_THROW(layers::deserialize(parse_json(R"({"class_name": "Pipeline", "config": {}})")),
               ValueError);
}

Tensors boxes_of(int64_t n) {
  std::vector<float> boxes(8 * n);
  std::vector<int64_t> labels(2 * n);
  for (size_t i = 0; i < boxes.size(); ++i) boxes[i] = static_cast<float>(i);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(i);
  return Tensors{{"images", Tensor::zeros({2, 1, 1, 1}, DType::kUint8)},
                 {"bounding_boxes", Tensors{{"boxes", Tensor::from(boxes, {2, n, 4})},
                                            {"labels", Tensor::from(labels, {2, n})}}}};
}

TEST(MaxNumBoundingBoxesTest, DropsOrAddsBoxes) {
  const MaxNumBoundingBoxes layer({.max_number = 2});
  const Tensors cut = layer(boxes_of(3));
  EXPECT_EQ(cut["images"].tensor().dtype(), DType::kUint8);
  EXPECT_EQ(cut["bounding_boxes"]["labels"].tensor().to_vector<int64_t>(),
            (std::vector<int64_t>{0, 1, 3, 4}));
  const Tensors filled = layer(boxes_of(1));
  EXPECT_EQ(filled["bounding_boxes"]["labels"].tensor().to_vector<int64_t>(),
            (std::vector<int64_t>{0, -1, 1, -1}));
  EXPECT_EQ(filled["bounding_boxes"]["boxes"].tensor().to_vector<float>(),
            (std::vector<float>{0, 1, 2, 3, -1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1}));
}

TEST(MaxNumBoundingBoxesTest, RejectsInvalidBoxes) {
  EXPECT_THROW(MaxNumBoundingBoxes({}), ValueError);
  const MaxNumBoundingBoxes layer({.max_number = 2});
  Tensors::Dict batch = boxes_of(1).entries();
  batch["bounding_boxes"] =
      Tensors{{"boxes", Tensor::zeros({2, 1, 3})}, {"labels", Tensor::zeros({2, 1})}};
  EXPECT_THROW(layer(Tensors(batch)), ValueError);
  batch["bounding_boxes"] = Tensors{{"boxes", Tensor::zeros({2, 1, 4})}};
  EXPECT_THROW(layer(Tensors(batch)), ValueError);
}

TEST(PipelineTest, MeetTheContractOfLayers) {
  expect_layer_contract({.class_name = "Pipeline",
                         .config = R"({"name": "steps", "layers": [{"class_name": "RandomFlip",
                           "config": {"seed": 3}}, {"class_name": "Rescaling", "config": {}}]})",
                         .inputs = float_spec({2, 2, 2, 3}),
                         .output = float_spec({2, 2, 2, 3})});
  const auto batch = [](int64_t boxes) {
    return Specs{{"images", float_spec({2, 2, 2, 3})},
                 {"bounding_boxes",
                  Specs{{"boxes", float_spec({2, boxes, 4})}, {"labels", int_spec({2, boxes})}}}};
  };
  expect_layer_contract({.class_name = "MaxNumBoundingBoxes",
                         .config = R"({"max_number": 3, "fill_value": -2})",
                         .inputs = batch(1),
                         .output = batch(3)});
}

}  // namespace keel::pipeline_test
