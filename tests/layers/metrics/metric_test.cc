// Tests layers/metrics/builtin_metrics.cc.
#include <keel/layers/metrics/metric.h>

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/losses.h>
#include <keel/metrics.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"

namespace keel::metric_test {

using distribute::TPUStrategy;
using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::message_of;

MetricHandle read(const char* json) { return metrics::deserialize(parse_json(json)); }

// Creates a metric by class name. MeanMetricWrapper needs a function, and the predictions have
// three classes.
MetricHandle made(const std::string& class_name) {
  if (class_name.ends_with("IoU") && class_name != "BinaryIoU") {
    const Config options = Config::dict({{"num_classes", 3}});
    return metrics::deserialize(Config::dict({{"class_name", class_name}, {"config", options}}));
  }
  if (class_name != "MeanMetricWrapper") return metrics::get(class_name);
  return metrics::MeanMetricWrapper({.fn = "huber"});
}

bool takes_class_numbers(const std::string& class_name) { return class_name.starts_with("Sparse"); }

// Four rows of probabilities of three classes.
Tensor predictions() {
  return Tensor::from<float>({.1f, .7f, .2f, .5f, .3f, .2f, .25f, .15f, .6f, .2f, .45f, .35f},
                             {4, 3});
}
Tensor labels_for(const std::string& class_name) {
  if (class_name == "GAUC") {
    return metrics::labels_of_users(
        labels_for("AUC"), Tensor::from<int32_t>({1, 1, 1, 2, 2, 2, 3, 3, 3, 1, 2, 3}, {4, 3}));
  }
  if (takes_class_numbers(class_name)) return Tensor::from<int32_t>({1, 2, 2, 0}, {4});
  return Tensor::from<float>({0, 1, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0}, {4, 3});
}

Tensor rows(const Tensor& x, int64_t begin, int64_t end) {
  const int64_t each = x.size() / x.dim(0);
  return visit_numeric(x.dtype(), "rows", [&]<class T>(const T&) {
    return Tensor::from(x.data<T>().subspan(begin * each, (end - begin) * each),
                        x.shape().with(0, end - begin));
  });
}

TEST(MetricTest, AllRoundTripThroughTheirConfigs) {
  for (const std::string& class_name : metric_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const Config config = metrics::serialize(*made(class_name));
    EXPECT_EQ(metrics::serialize(*metrics::deserialize(config)), config);
  }
}

TEST(MetricTest, ResultsWithoutSamplesAreZero) {
  for (const std::string& class_name : metric_registry().class_names()) {
    EXPECT_EQ(made(class_name)->result(), 0) << class_name;
  }
}

TEST(MetricTest, ResetForgetsTheBatches) {
  for (const std::string& class_name : metric_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const MetricHandle metric = made(class_name);
    metric->update_state(labels_for(class_name), predictions());
    const Tensor first = metric->result_tensor();
    metric->reset_state();
    EXPECT_EQ(metric->result(), 0);
    metric->update_state(labels_for(class_name), predictions());
    expect_near(metric->result_tensor(), first, {.absolute = 1e-6});
  }
}

TEST(MetricTest, ResultsDoNotDependOnBatching) {
  for (const std::string& class_name : metric_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const Tensor y = labels_for(class_name), p = predictions();
    const MetricHandle whole = made(class_name), parts = made(class_name);
    whole->update_state(y, p);
    parts->update_state(rows(y, 0, 3), rows(p, 0, 3));
    parts->update_state(rows(y, 0, 0), rows(p, 0, 0));
    parts->update_state(rows(y, 3, 4), rows(p, 3, 4));
    expect_near(parts->result_tensor(), whole->result_tensor(), {.absolute = 1e-6});
  }
}

TEST(MetricTest, AWeightOfTwoCountsTheRowTwice) {
  for (const std::string& class_name : metric_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const Tensor y = labels_for(class_name), p = predictions();
    const MetricHandle weighted = made(class_name), twice = made(class_name);
    weighted->update_state(y, p, Tensor::from<float>({1, 2, 0, 1}, {4}));
    for (const int64_t row : {0, 1, 1, 3}) {
      twice->update_state(rows(y, row, row + 1), rows(p, row, row + 1));
    }
    expect_near(weighted->result_tensor(), twice->result_tensor(), {.absolute = 1e-6});
    const MetricHandle scalar = made(class_name), plain = made(class_name);
    scalar->update_state(y, p, Tensor::scalar(1.0f));
    plain->update_state(y, p);
    expect_near(scalar->result_tensor(), plain->result_tensor(), {.absolute = 1e-6});
  }
}

TEST(MetricTest, ReplicasKeepTheirOwnStateAndTheResultCombinesIt) {
  TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  const auto numbers = strategy.distribute_values_from_function([](int r) { return r; });
  for (const std::string& class_name : metric_registry().class_names()) {
    SCOPED_TRACE(class_name);
    const Tensor y = labels_for(class_name), p = predictions();
    const MetricHandle whole = made(class_name), metric = made(class_name);
    whole->update_state(y, p);
    strategy.run(
        [&](int r) {
          // The last two replicas have zero rows and two rows.
          const int64_t begin = std::min(r, 2), end = r < 2 ? r + 1 : r == 2 ? 2 : 4;
          metric->update_state(rows(y, begin, end), rows(p, begin, end));
          EXPECT_THROW(metric->result(), RuntimeError);
        },
        numbers);
    expect_near(metric->result_tensor(), whole->result_tensor(), {.absolute = 1e-6});
    metric->reset_state();
    EXPECT_EQ(metric->result(), 0);
  }
}

TEST(MetricTest, RebuildUsesTheCurrentStrategy) {
  for (const MetricHandle& metric : {MetricHandle(metrics::Mean({})), made("R2Score")}) {
    const Tensor p = Tensor::full<float>({1, 1}, 5);
    metric->update_state(p, p);
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    metric->rebuild();
    EXPECT_EQ(metric->result(), 0);
    const auto numbers = strategy.distribute_values_from_function([](int r) { return r + 1; });
    strategy.run(
        [&](int r) {
          const Tensor x = Tensor::full<float>({1, 1}, static_cast<float>(r));
          metric->update_state(x, x);
        },
        numbers);
    EXPECT_EQ(metric->result(), metric->class_name() == "Mean" ? 1.5 : 1);
  }
}

TEST(MetricTest, TapesRecordNothing) {
  const Tensor p = Tensor::full<float>({1}, 2);
  GradientTape tape;
  tape.watch(p);
  const metrics::MeanSquaredError metric({});
  metric->update_state(Tensor::zeros({1}), p);
  EXPECT_FALSE(tape.input_gradient(metric->state(), {p})[0]);
}

TEST(MetricTest, NaNIsRejectedBeforeTheStateChanges) {
  const metrics::AUC auc({.name = "area"});
  const Tensor y = Tensor::from<float>({0, 1}, {2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(
      message_of<ValueError>([&] { auc->update_state(y, Tensor::from<float>({0.5f, nan}, {2})); }),
      HasSubstr("area"));
  auc->update_state(y, Tensor::from<float>({0.2f, 0.8f}, {2}));
  EXPECT_NEAR(auc->result(), 1, 1e-12);
}

TEST(MetricTest, IncompatibleShapesAreRejected) {
  const metrics::MeanSquaredError metric({});
  const Tensor two = Tensor::zeros({2});
  EXPECT_THROW(metric->update_state(two, Tensor::zeros({3})), ValueError);
  EXPECT_THROW(metric->update_state(two, two, Tensor::zeros({3})), ValueError);
  EXPECT_THROW(
      metric->update_state(Tensor::zeros({2, 3}), Tensor::zeros({2, 3}), Tensor::zeros({2, 3})),
      ValueError);
}

TEST(MetricTest, AreFoundByTheNamesOfKeras) {
  for (const auto& [name, class_name] : std::vector<std::pair<const char*, const char*>>{
           {"acc", "AutoAccuracy"},
           {"Accuracy", "AutoAccuracy"},
           {"auc", "AUC"},
           {"AUC", "AUC"},
           {"bce", "BinaryCrossentropy"},
           {"crossentropy", "AutoCrossentropy"},
           {"f1_score", "F1Score"},
           {"false_negatives", "FalseNegatives"},
           {"kl_divergence", "KLDivergence"},
           {"log_cosh_error", "LogCoshError"},
           {"MSE", "MeanSquaredError"},
           {"msle", "MeanSquaredLogarithmicError"},
           {"precision_at_recall", "PrecisionAtRecall"},
           {"r2_score", "R2Score"},
           {"sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy"}}) {
    EXPECT_EQ(metrics::get(name)->class_name(), class_name);
    EXPECT_EQ(metrics::get(name)->name(), name);
  }
  EXPECT_THROW(metrics::get("area"), ValueError);
}

TEST(MetricTest, FormsOfKerasFilesAreRead) {
  EXPECT_EQ(read(R"("mse")")->class_name(), "MeanSquaredError");
  const MetricHandle keras3 = read(
      R"({"module": "keras.metrics", "class_name": "BinaryAccuracy", "registered_name": null,
          "config": {"name": "hit", "threshold": 0.25, "dtype": {"module": "keras",
          "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": null}}})");
  EXPECT_EQ(keras3->get_config()["threshold"], Config(.25));
  const MetricHandle keras2 = read(R"({"class_name": "MeanMetricWrapper",
               "config": {"name": "accuracy", "dtype": "float32", "fn": "binary_accuracy"}})");
  EXPECT_EQ(keras2->class_name(), "BinaryAccuracy");
  EXPECT_EQ(keras2->name(), "accuracy");
  EXPECT_EQ(read(R"({"class_name": "MeanMetricWrapper", "config": {"name": "h", "fn":
                     {"module": "builtins", "class_name": "function", "config": "huber"}}})")
                ->class_name(),
            "MeanMetricWrapper");
  EXPECT_EQ(read(R"({"class_name": "MeanSquaredError", "config": {"fn": "mse"}})")->class_name(),
            "MeanSquaredError");
  EXPECT_THROW(read(R"({"class_name": "AUC", "config": {"curves": 1}})"), ValueError);
}

TEST(MetricTest, AnArgumentIsSerializedAsItWasGiven) {
  const metrics::AUC auc({.name = "pr", .num_thresholds = 50, .curve = "PR"});
  EXPECT_EQ(MetricArgument("auc").config(), Config("auc"));
  EXPECT_EQ(MetricArgument(auc).config(), metrics::serialize(*auc));
}

}  // namespace keel::metric_test
