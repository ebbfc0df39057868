// Tests layers/losses/builtin_losses.cc.
#include <keel/layers/losses/loss.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/losses.h>

namespace keel::loss_test {

// Labels and predictions that every loss accepts, at points where all losses are differentiable.
Tensor labels_for(const std::string& class_name) {
  for (const char* of_class_numbers :
       {"CategoricalGeneralizedCrossEntropy", "Circle", "SparseCategoricalCrossentropy"}) {
    if (class_name == of_class_numbers) return Tensor::from<int32_t>({2, 0}, {2});
  }
  if (class_name == "CTC") return Tensor::from<int32_t>({2, 0, 1, 2}, {2, 2});
  // The quotient by labels near 0 is too large for finite differences.
  if (class_name == "MeanAbsolutePercentageError") return Tensor::full<double>({2, 3}, 1);
  return Tensor::from<double>({0, 0, 1, 1, 0, 0}, {2, 3});
}
Tensor predictions_for(const std::string& class_name) {
  const Tensor rows = Tensor::from<double>({.2, .3, .45, .35, .15, .4}, {2, 3});
  if (class_name != "CTC") return rows;
  return Tensor::from<double>({.2, .3, .45, .35, .15, .4, .6, .1, -.2, .7, -.3, .5}, {2, 2, 3});
}

double value(const Loss& loss, const Tensor& y_true, const Tensor& y_pred) {
  return loss.call(y_true, y_pred).item<double>();
}

TEST(LossTest, AllGradientsMatchFiniteDifferences) {
  for (const std::string& class_name : loss_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const LossHandle loss = losses::get(class_name);
    const Tensor y = labels_for(class_name), p = predictions_for(class_name);
    GradientTape tape;
    tape.watch(p);
    const Tensor found = tape.input_gradient(loss->call(y, p), {p})[0].dense();
    for (int64_t i = 0; i < p.size(); ++i) {
      constexpr double kStep = 1e-6;
      Tensor more = p.clone(), less = p.clone();
      more.mutable_data<double>()[i] += kStep;
      less.mutable_data<double>()[i] -= kStep;
      const double slope = (value(*loss, y, more) - value(*loss, y, less)) / (2 * kStep);
      EXPECT_NEAR(found.data<double>()[i], slope, 1e-6 * std::max(1.0, std::abs(slope)));
    }
  }
}

TEST(LossTest, AllAcceptSymbolicBatches) {
  for (const std::string& class_name : loss_registry().class_names()) {
    if (class_name == "Circle") continue;  // compares the rows of a batch
    SCOPED_TRACE(class_name);
    TensorSpec y = labels_for(class_name).spec(), p = predictions_for(class_name).spec();
    y.shape = y.shape.with(0, kUnknown);
    p.shape = p.shape.with(0, kUnknown);
    const Tensor loss = losses::get(class_name)->call(Tensor::symbolic(y), Tensor::symbolic(p));
    EXPECT_TRUE(loss.is_symbolic());
    EXPECT_EQ(loss.shape(), Shape({}));
  }
}

TEST(LossTest, AllRoundTripThroughTheirConfigs) {
  for (const std::string& class_name : loss_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const Config config = losses::serialize(*losses::get(class_name));
    EXPECT_EQ(losses::serialize(*losses::deserialize(config)), config);
  }
}

TEST(LossTest, ConfigsMatchKeras) {
  EXPECT_EQ(to_json(losses::serialize(*losses::get("bce"))),
            R"({"class_name": "BinaryCrossentropy", "config": {"name": "binary_crossentropy", )"
            R"("reduction": "sum_over_batch_size", "from_logits": false, "label_smoothing": 0.0, )"
            R"("axis": -1}})");
  EXPECT_EQ(to_json(losses::get("Tversky")->get_config()),
            R"({"name": "tversky", "reduction": "sum_over_batch_size", "alpha": 0.5, )"
            R"("beta": 0.5, "axis": null})");
}

TEST(LossTest, AreFoundByTheNamesOfKeras) {
  for (const auto& [name, class_name] : std::vector<std::pair<const char*, const char*>>{
           {"binary_crossentropy", "BinaryCrossentropy"},
           {"BinaryCrossentropy", "BinaryCrossentropy"},
           {"categorical_focal_crossentropy", "CategoricalFocalCrossentropy"},
           {"cosine_similarity", "CosineSimilarity"},
           {"crossentropy", "AutoCrossentropy"},
           {"huber", "Huber"},
           {"kl_divergence", "KLDivergence"},
           {"KLD", "KLDivergence"},
           {"log_cosh", "LogCosh"},
           {"MAE", "MeanAbsoluteError"},
           {"mape", "MeanAbsolutePercentageError"},
           {"mse", "MeanSquaredError"},
           {"msle", "MeanSquaredLogarithmicError"},
           {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
           {"squared_hinge", "SquaredHinge"}}) {
    EXPECT_EQ(losses::get(name)->class_name(), class_name);
  }
  EXPECT_THROW(losses::get("mean_square"), ValueError);
}

TEST(LossTest, FormsOfKerasFilesAreRead) {
  const auto read = [](const char* json) { return losses::deserialize(parse_json(json)); };
  EXPECT_EQ(read(R"("kld")")->class_name(), "KLDivergence");
  EXPECT_EQ(read(R"({"module": "keras.losses", "class_name": "Huber", "config": {"delta": 2.0},
                     "registered_name": null})")
                ->get_config()["delta"],
            Config(2.0));
  EXPECT_EQ(read(R"({"module": "builtins", "class_name": "function",
                     "config": "mean_squared_error", "registered_name": "function"})")
                ->class_name(),
            "MeanSquaredError");
  const LossHandle wrapped = read(
      R"({"class_name": "LossFunctionWrapper", "config": {"name": "mine", "reduction": null,
          "fn": "binary_crossentropy", "from_logits": true}})");
  EXPECT_EQ(wrapped->class_name(), "BinaryCrossentropy");
  EXPECT_EQ(wrapped->name(), "mine");
  EXPECT_EQ(wrapped->reduction(), Reduction::kNone);
  EXPECT_EQ(read(R"({"class_name": "Poisson", "config": {"reduction": "auto", "fn": "poisson"}})")
                ->reduction(),
            Reduction::kSumOverBatchSize);
  EXPECT_THROW(read(R"({"class_name": "Poisson", "config": {"delta": 1}})"), ValueError);
}

TEST(LossTest, AnArgumentIsSerializedAsItWasGiven) {
  EXPECT_EQ(LossArgument("mse").config(), Config("mse"));
  EXPECT_EQ(LossArgument(losses::Huber({})).config()["class_name"], Config("Huber"));
  EXPECT_TRUE(LossArgument().config().is_null());
}

TEST(LossTest, CrossentropyDependsOnTheShapes) {
  const LossHandle loss = losses::get("ce");
  const Tensor p = Tensor::from<float>({.1f, .9f, .4f, .6f}, {2, 2});
  const auto expect_like = [&](const char* name, const Tensor& y, const Tensor& predicted) {
    EXPECT_EQ(loss->call(y, predicted).item<float>(),
              losses::get(name)->call(y, predicted).item<float>());
  };
  expect_like("binary_crossentropy", Tensor::from<int32_t>({1, 0, 0, 1}, {4}), p.reshaped({4, 1}));
  expect_like("sparse_categorical_crossentropy", Tensor::from<int32_t>({1, 0}, {2}), p);
  expect_like("sparse_categorical_crossentropy", Tensor::from<int32_t>({1, 0}, {2, 1}), p);
  expect_like("categorical_crossentropy", Tensor::from<float>({0, 1, 1, 0}, {2, 2}), p);
}

TEST(LossTest, LabelsAreExpandedToTheRankOfPredictions) {
  const Tensor y_true = Tensor::from<int32_t>({1, 0, 1}, {3});
  const Tensor y_pred = Tensor::from<float>({0.5f, 1, 2}, {3, 1});
  const Tensor losses = losses::mean_squared_error(y_true, y_pred);
  EXPECT_EQ(losses.to_vector<float>(), (std::vector<float>{0.25f, 1, 1}));
  // Predictions without the column also count as one column, not as one sample.
  EXPECT_EQ(losses::mean_squared_error(y_true, y_pred.reshaped({3})).shape(), Shape({3}));
}

TEST(LossTest, AllComputeInTheDtypeOfThePredictions) {
  for (const std::string& class_name : loss_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const Tensor p = predictions_for(class_name);
    EXPECT_EQ(losses::get(class_name)->call(labels_for(class_name), p).dtype(), DType::kFloat64);
  }
}

TEST(LossTest, EmptyBatchesHaveNoLossAndNoGradient) {
  const Tensor y_pred = Tensor::zeros({0, 1});
  for (const char* name : {"bce", "mse", "hinge", "kld"}) {
    GradientTape tape;
    tape.watch(y_pred);
    const Tensor loss = losses::get(name)->call(Tensor::zeros({0}), y_pred);
    EXPECT_EQ(loss.item<float>(), 0) << name;
    EXPECT_EQ(tape.input_gradient(loss, {y_pred})[0].dense().shape(), Shape({0, 1}));
  }
}

// ---- Reductions, weights and masks: two rows of two steps, with squared errors 1, 4, 9 and 16.

Tensor zeros() { return Tensor::zeros({2, 2, 1}); }
Tensor steps() { return Tensor::from<float>({1, 2, 3, 4}, {2, 2, 1}); }

LossHandle squares(const std::string& reduction) {
  return losses::MeanSquaredError({.reduction = reduction});
}

float reduced(const std::string& reduction, const Tensor& weight = {}, const Tensor& mask = {}) {
  return squares(reduction)->call(zeros(), steps().with_mask(mask), weight).item<float>();
}

TEST(LossTest, ReductionsDivideByTheirCounts) {
  EXPECT_EQ(reduced("sum"), 30);
  EXPECT_EQ(reduced("sum_over_batch_size"), 7.5f);
  EXPECT_EQ(reduced("mean"), 7.5f);
  EXPECT_EQ(reduced("mean_with_sample_weight"), 7.5f);
  EXPECT_EQ(squares("none")->call(zeros(), steps()).to_vector<float>(),
            (std::vector<float>{1, 4, 9, 16}));
  const Tensor weight = Tensor::from<float>({1, 0, 0, 3}, {2, 2});
  EXPECT_EQ(reduced("sum", weight), 49);
  EXPECT_EQ(reduced("sum_over_batch_size", weight), 12.25f);
  EXPECT_EQ(reduced("mean_with_sample_weight", weight), 12.25f);
  EXPECT_EQ(reduced("mean_with_sample_weight", Tensor::from<float>({1, 1, 0, 0}, {2, 2})), 2.5f);
  EXPECT_EQ(reduced("mean_with_sample_weight", Tensor::zeros({2, 2})), 0);
}

TEST(LossTest, WeightsMayHaveFewerDimensions) {
  EXPECT_EQ(reduced("sum", Tensor::from<float>({1, 3}, {2})), 80);
  EXPECT_EQ(reduced("sum", Tensor::from<float>({1, 3}, {2, 1})), 80);
  EXPECT_EQ(reduced("sum", Tensor::from<int32_t>({1, 1, 3, 3}, {2, 2, 1})), 80);
  EXPECT_EQ(reduced("sum", Tensor::scalar(2.0f)), 60);
  EXPECT_EQ(reduced("mean_with_sample_weight", Tensor::from<float>({1, 3}, {2})), 10);
}

TEST(LossTest, AMaskOfThePredictionsLeavesLossesOut) {
  const Tensor mask = Tensor::from<bool>({true, false, true, false}, {2, 2});
  EXPECT_EQ(reduced("sum", {}, mask), 10);
  EXPECT_EQ(reduced("sum_over_batch_size", {}, mask), 5);
  EXPECT_EQ(reduced("mean_with_sample_weight", {}, mask), 5);
  const Tensor weight = Tensor::from<float>({1, 3}, {2});
  EXPECT_EQ(reduced("sum", weight, mask), 28);
  EXPECT_EQ(reduced("sum_over_batch_size", weight, mask), 14);
  EXPECT_EQ(reduced("mean_with_sample_weight", weight, mask), 7);
  const Tensor none = Tensor::full<bool>({2, 2}, false);
  EXPECT_EQ(reduced("sum_over_batch_size", {}, none), 0);
  EXPECT_EQ(reduced("mean_with_sample_weight", weight, none), 0);
  const Tensor row = Tensor::from<bool>({false, true}, {2});
  EXPECT_EQ(reduced("sum", {}, row), 25);
}

TEST(LossTest, MaskedTotalsMayIncludeAllReplicas) {
  const Tensor mask = Tensor::from<bool>({true, false, true, false}, {2, 2});
  // The other replica has four more losses, none of which is masked.
  const auto sum = [](const Tensor& totals) { return totals + Tensor::full<float>({2}, 4); };
  const Tensor losses = squares("mean")->weighted(zeros(), steps().with_mask(mask), {}, sum);
  EXPECT_FLOAT_EQ(ops::sum(losses).item<float>(), 10 * 8.0f / 6);
}

TEST(LossTest, DivisorsIncludeAllRows) {
  EXPECT_EQ(squares("mean")->divisor({2, 2}, 10, 1), 20);
  EXPECT_EQ(squares("mean_with_sample_weight")->divisor({2, 2}, 10, .5), 10);
  EXPECT_EQ(squares("sum")->divisor({2, 2}, 10, 1), 1);
  EXPECT_EQ(squares("mean")->divisor({0, 2}, 0, 1), 1);
  EXPECT_EQ(losses::get("dice")->divisor(Shape({}), 10, 1), 1);
  const losses::CosineSimilarity columns({.axis = 0});
  EXPECT_EQ(columns->divisor({3}, 10, 1), 3);
}

TEST(LossTest, IncompatibleShapesAreRejected) {
  const LossHandle loss = losses::get("mse");
  const Tensor y = Tensor::zeros({2, 3});
  EXPECT_THROW(loss->call(Tensor::zeros({2, 1}), y), ValueError);
  EXPECT_THROW(loss->call(Tensor::zeros({3}), y), ValueError);
  EXPECT_THROW(loss->call(Tensor::scalar(1.0f), Tensor::scalar(1.0f)), ValueError);
  EXPECT_THROW(loss->call(y, y, Tensor::zeros({3})), ValueError);
  EXPECT_THROW(loss->call(y, y, Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(loss->call(y, y.with_mask(Tensor::full<bool>({2, 3}, true))), ValueError);
  EXPECT_THROW(loss->call(y, Tensor::zeros({2, 3}, DType::kInt32)), TypeError);
}

TEST(LossTest, UnknownReductionsAreRejected) {
  EXPECT_THROW(losses::MeanSquaredError({.reduction = "average"}), ValueError);
}

}  // namespace keel::loss_test
