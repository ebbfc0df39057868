// Tests layers/metrics/confusion/internal/threshold_histogram.cc.
#include <keel/layers/metrics/confusion/auc.h>

#include <gtest/gtest.h>

namespace keel::auc_test {

// The probability that a positive example has a greater score than a negative one. Ties count half.
double pairwise_auc(const std::vector<float>& label, const std::vector<float>& score) {
  double above = 0, pairs = 0;
  for (size_t i = 0; i < label.size(); ++i) {
    for (size_t j = 0; j < label.size(); ++j) {
      if (label[i] != 1 || label[j] != 0) continue;
      pairs += 1;
      above += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
    }
  }
  return above / pairs;
}

TEST(AUCTest, IsExactForScoresAtTheThresholds) {
  std::vector<float> label, score;
  for (int i = 0; i < 300; ++i) {
    label.push_back(static_cast<float>(i * 7 % 10 < 3));
    score.push_back(static_cast<float>((i * 31 + (i * 7 % 10 < 3 ? 40 : 0)) % 200) / 199.0f);
  }
  const metrics::AUC auc({});
  auc->update_state(Tensor::from(label, {300}), Tensor::from(score, {300, 1}));
  EXPECT_NEAR(auc->result(), pairwise_auc(label, score), 1e-12);
}

// Two columns with areas 1 and 3 / 4.
Tensor labels() { return Tensor::from<float>({1, 1, 0, 0, 0, 1, 0, 0}, {4, 2}); }
Tensor scores() { return Tensor::from<float>({.9f, .6f, .1f, .8f, .2f, .9f, .3f, .1f}, {4, 2}); }

double area(const AUCMetricOptions& options) {
  const metrics::AUC auc(options);
  auc->update_state(labels(), scores());
  return auc->result();
}

TEST(AUCTest, LabelsMayHaveSeparateCurves) {
  EXPECT_NEAR(area({.multi_label = true}), .875, 1e-12);
  EXPECT_NEAR(area({.multi_label = true, .num_labels = 2}), .875, 1e-12);
  EXPECT_NEAR(area({.multi_label = true, .label_weights = std::vector<double>{3, 1}}), .9375,
              1e-12);
  EXPECT_NEAR(area({.multi_label = true, .label_weights = std::vector<double>{0, 0}}), 0, 1e-12);
}

TEST(AUCTest, LabelWeightsOfOneCurveWeighElements) {
  EXPECT_NEAR(area({.label_weights = std::vector<double>{1, 0}}), 1, 1e-12);
  EXPECT_NEAR(area({.label_weights = std::vector<double>{0, 1}}), .75, 1e-12);
}

TEST(AUCTest, GivenThresholdsMakeTheCurve) {
  EXPECT_NEAR(area({.label_weights = std::vector<double>{0, 1},
                    .thresholds = std::vector<double>{.3, .85, .7}}),
              .75, 1e-12);
  EXPECT_NEAR(
      area({.label_weights = std::vector<double>{0, 1}, .thresholds = std::vector<double>{.05}}),
      .5, 1e-12);
}

TEST(AUCTest, RejectsValuesThatAreNotProbabilities) {
  const metrics::AUC auc({});
  const Tensor y = Tensor::from<float>({0, 1}, {2});
  EXPECT_THROW(auc->update_state(y, Tensor::from<float>({0.5f, 1.5f}, {2})), ValueError);
  EXPECT_THROW(auc->update_state(y, Tensor::from<float>({-0.5f, 0.5f}, {2})), ValueError);
  auc->update_state(y, Tensor::from<float>({0, 1.000001f}, {2}));
  EXPECT_NEAR(auc->result(), 1, 1e-12);
  const metrics::AUC logits({.from_logits = true});
  logits->update_state(y, Tensor::from<float>({-5, 5}, {2}));
  EXPECT_NEAR(logits->result(), 1, 1e-12);
}

TEST(AUCTest, RejectsDifferentNumbersOfColumns) {
  const Tensor three = Tensor::zeros({1, 3});
  EXPECT_THROW(metrics::AUC({.multi_label = true, .num_labels = 2})->update_state(three, three),
               ValueError);
  EXPECT_THROW(
      metrics::AUC({.label_weights = std::vector<double>{1, 1}})->update_state(three, three),
      ValueError);
  const metrics::AUC by_label({.multi_label = true});
  by_label->update_state(labels(), scores());
  EXPECT_THROW(by_label->update_state(three, three), ValueError);
  const Tensor deep = Tensor::zeros({1, 2, 2});
  EXPECT_THROW(by_label->update_state(deep, deep), ValueError);
}

TEST(AUCTest, RejectsInvalidOptions) {
  EXPECT_THROW(metrics::AUC({.num_thresholds = 1}), ValueError);
  EXPECT_THROW(metrics::AUC({.curve = "Roc"}), ValueError);
  EXPECT_THROW(metrics::AUC({.summation_method = "trapezoid"}), ValueError);
  EXPECT_THROW(metrics::AUC({.thresholds = std::vector<double>{1.5}}), ValueError);
  EXPECT_THROW(metrics::AUC({.num_labels = 3}), ValueError);
  EXPECT_THROW(metrics::AUC({.multi_label = true, .num_labels = 0}), ValueError);
  EXPECT_THROW(metrics::AUC({.label_weights = std::vector<double>{1, -1}}), ValueError);
}

TEST(AUCTest, ConfigsMatchKeras) {
  EXPECT_EQ(to_json(metrics::AUC({})->get_config()),
            R"({"name": "auc", "dtype": "float32", "num_thresholds": 200, "curve": "ROC", )"
            R"("summation_method": "interpolation", "multi_label": false, "num_labels": null, )"
            R"("label_weights": null, "from_logits": false})");
  const metrics::AUC own({.curve = "pr", .thresholds = std::vector<double>{.5, .25}});
  EXPECT_EQ(own->get_config()["num_thresholds"], Config(4));
  EXPECT_EQ(to_json(own->get_config()["thresholds"]), "[0.25, 0.5]");
  EXPECT_EQ(own->get_config()["curve"], Config("PR"));
}

}  // namespace keel::auc_test
