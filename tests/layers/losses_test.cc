#include "layers/losses.h"

#include "gtest/gtest.h"

#include "autodiff/tape.h"
#include "tests/layers/losses_golden.h"

namespace keel {
namespace {

void expect_near(const Tensor& received, const std::vector<float>& expected, const char* what) {
  ASSERT_EQ(received.size(), static_cast<int64_t>(expected.size())) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(received.data<float>()[i], expected[i], 1e-6 + 2e-6 * std::abs(expected[i]))
        << what << ", element " << i;
  }
}

TEST(LossesTest, AgreeWithKerasInValueAndGradient) {
  for (const auto& c : testing_support::loss_cases()) {
    Config config = parse_json(c.config);
    const Tensor y_true = Tensor::from(c.y_true, c.label_shape);
    const Tensor y_pred = Tensor::from(c.y_pred, c.shape);
    for (const auto& r : c.results) {
      SCOPED_TRACE(str(c.config, " ", r.reduction, r.weighted ? " weighted" : ""));
      Config parameters = config["config"];
      parameters.set("reduction", r.reduction);
      config.set("config", parameters);
      const LossHandle loss = losses::deserialize(config);
      const Tensor weight = r.weighted ? Tensor::from(c.sample_weight, c.weight_shape) : Tensor();
      GradientTape tape;
      tape.watch(y_pred);
      const Tensor value = loss->call(y_true, y_pred, weight);
      expect_near(value, r.value, "value");
      if (r.gradient.empty()) continue;
      expect_near(tape.input_gradient(value, {y_pred})[0].dense(), r.gradient, "gradient");
    }
  }
}

TEST(LossesTest, ConfigsAreThoseOfKeras) {
  EXPECT_EQ(to_json(losses::serialize(*losses::get("bce"))),
            R"({"class_name": "BinaryCrossentropy", "config": {"name": "binary_crossentropy", )"
            R"("reduction": "sum_over_batch_size", "from_logits": false, "label_smoothing": 0.0, )"
            R"("axis": -1}})");
  const losses::Huber huber({.delta = 0.5, .reduction = "sum"});
  const Config config = losses::serialize(*huber);
  EXPECT_EQ(losses::serialize(*losses::deserialize(config)), config);
}

TEST(LossesTest, NamesOfKerasFindThem) {
  for (const auto& [name, class_name] : std::vector<std::pair<const char*, const char*>>{
           {"binary_crossentropy", "BinaryCrossentropy"},
           {"BinaryCrossentropy", "BinaryCrossentropy"},
           {"categorical_crossentropy", "CategoricalCrossentropy"},
           {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
           {"mse", "MeanSquaredError"},
           {"MAE", "MeanAbsoluteError"},
           {"huber", "Huber"}}) {
    EXPECT_EQ(losses::get(name)->class_name(), class_name);
  }
  EXPECT_THROW(losses::get("mean_square"), ValueError);
}

TEST(LossesTest, AnArgumentIsSerializedAsItWasGiven) {
  EXPECT_EQ(LossArgument("mse").config(), Config("mse"));
  EXPECT_EQ(LossArgument(losses::Huber({})).config()["class_name"], Config("Huber"));
  EXPECT_TRUE(LossArgument().config().is_null());
}

TEST(LossesTest, ALabelWithoutTheColumnOfThePredictionsGetsIt) {
  const Tensor y_true = Tensor::from<int32_t>({1, 0, 1}, {3});
  const Tensor y_pred = Tensor::from<float>({0.5f, 1, 2}, {3, 1});
  const Tensor losses = losses::mean_squared_error(y_true, y_pred);
  EXPECT_EQ(losses.to_vector<float>(), (std::vector<float>{0.25f, 1, 1}));
  // Predictions without it count as one column too, not as one sample.
  EXPECT_EQ(losses::mean_squared_error(y_true, y_pred.reshaped({3})).shape(), Shape({3}));
}

TEST(LossesTest, ComputeInTheDtypeOfThePredictions) {
  const Tensor y_true = Tensor::from<float>({1}, {1, 1});
  const Tensor y_pred = Tensor::from<double>({0.25}, {1, 1});
  EXPECT_EQ(losses::mean_absolute_error(y_true, y_pred).item<double>(), 0.75);
}

TEST(LossesTest, NoRowsHaveNoLossAndNoGradient) {
  const Tensor y_pred = Tensor::zeros({0, 1});
  GradientTape tape;
  tape.watch(y_pred);
  const Tensor loss = losses::get("bce")->call(Tensor::zeros({0}), y_pred);
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(tape.input_gradient(loss, {y_pred})[0].dense().shape(), Shape({0, 1}));
}

TEST(LossesTest, BinaryCrossentropyIsFiniteAtZeroAndOne) {
  const Tensor y_true = Tensor::from<float>({0, 1}, {2, 1});
  const Tensor y_pred = Tensor::from<float>({1, 0}, {2, 1});
  const auto losses = losses::binary_crossentropy(y_true, y_pred).to_vector<float>();
  EXPECT_NEAR(losses[0], 15.942385, 1e-5);  // -log of 1 minus the float next below 1 - 1e-7
  EXPECT_NEAR(losses[1], 16.118095, 1e-5);  // -log(1e-7)
}

TEST(LossesTest, ADimensionOfWeightsMayBeMissing) {
  const Tensor y = Tensor::zeros({2, 3, 1});
  const Tensor p = Tensor::full<float>({2, 3, 1}, 1);
  const LossHandle loss = losses::get("mse");
  EXPECT_EQ(loss->call(y, p, Tensor::from<float>({1, 3}, {2})).item<float>(), 2);
  EXPECT_EQ(loss->call(y, p, Tensor::from<float>({1, 3}, {2, 1})).item<float>(), 2);
  EXPECT_EQ(loss->call(y, p, Tensor::from<float>({1, 1, 1, 3, 3, 3}, {2, 3})).item<float>(), 2);
}

TEST(LossesTest, ShapesThatDoNotFitAreRefused) {
  const LossHandle loss = losses::get("mse");
  const Tensor y = Tensor::zeros({2, 3});
  EXPECT_THROW(loss->call(Tensor::zeros({2, 1}), y), ValueError);
  EXPECT_THROW(loss->call(Tensor::zeros({3}), y), ValueError);
  EXPECT_THROW(loss->call(Tensor::scalar(1.0f), Tensor::scalar(1.0f)), ValueError);
  EXPECT_THROW(loss->call(y, y, Tensor::zeros({3})), ValueError);
  EXPECT_THROW(loss->call(y, y, Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(loss->call(y, y, Tensor::scalar(1.0f)), ValueError);
  EXPECT_THROW(loss->call(y, Tensor::zeros({2, 3}, DType::kInt32)), TypeError);
}

TEST(LossesTest, LabelsThatAreNoClassAreRefused) {
  const Tensor p = Tensor::full<float>({2, 3}, 0.3f);
  EXPECT_THROW(losses::sparse_categorical_crossentropy(Tensor::from<int32_t>({0, 3}, {2}), p),
               ValueError);
  EXPECT_THROW(losses::sparse_categorical_crossentropy(Tensor::from<int32_t>({0, -1}, {2}), p),
               ValueError);
  EXPECT_THROW(losses::sparse_categorical_crossentropy(Tensor::from<float>({0, 0.5f}, {2}), p),
               ValueError);
  EXPECT_THROW(losses::sparse_categorical_crossentropy(Tensor::from<int32_t>({0}, {1}), p),
               ValueError);
}

TEST(LossesTest, BadOptionsAreRefused) {
  EXPECT_THROW(losses::BinaryCrossentropy({.label_smoothing = 1.5}), ValueError);
  EXPECT_THROW(losses::CategoricalCrossentropy({.label_smoothing = -0.1}), ValueError);
  EXPECT_THROW(losses::Huber({.delta = 0}), ValueError);
  EXPECT_THROW(losses::MeanSquaredError({.reduction = "mean"}), ValueError);
  EXPECT_THROW(losses::SparseCategoricalCrossentropy({.ignore_class = 0}), NotImplementedError);
  EXPECT_THROW(losses::SparseCategoricalCrossentropy({.axis = 0}), NotImplementedError);
}

}  // namespace
}  // namespace keel
