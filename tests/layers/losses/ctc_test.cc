#include <keel/layers/losses/ctc.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>

#include "tests/support/errors.h"

namespace keel::ctc_test {

using testing::HasSubstr;
using testing_support::message_of;

using Labels = std::vector<int64_t>;

// Merges repeated classes and removes blanks.
Labels transcription_of(const Labels& path) {
  Labels out;
  for (size_t t = 0; t < path.size(); ++t) {
    if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) out.push_back(path[t]);
  }
  return out;
}

// Returns minus the log of the summed probabilities of all paths with this transcription.
double by_enumeration(const std::vector<double>& logits, int64_t steps, int64_t classes,
                      const Labels& labels) {
  double sum = 0;
  Labels path(steps);
  const auto count = static_cast<int64_t>(std::pow(classes, steps));
  for (int64_t number = 0; number < count; ++number) {
    double probability = 1;
    for (int64_t t = 0, rest = number; t < steps; ++t, rest /= classes) {
      path[t] = rest % classes;
      double all = 0;
      for (int64_t c = 0; c < classes; ++c) all += std::exp(logits[t * classes + c]);
      probability *= std::exp(logits[t * classes + path[t]]) / all;
    }
    if (transcription_of(path) == labels) sum += probability;
  }
  return -std::log(sum);
}

std::vector<double> wave(int64_t n) {
  std::vector<double> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = 2 * std::sin(1.7 * static_cast<double>(i) + 0.3);
  return out;
}

TEST(CTCTest, SumsOverAllAlignments) {
  constexpr int64_t kSteps = 5, kClasses = 3;
  const std::vector<double> logits = wave(kSteps * kClasses);
  const Tensor p = Tensor::from(logits, {1, kSteps, kClasses});
  for (const Labels& labels : {Labels{}, Labels{1}, Labels{1, 2}, Labels{2, 2}, Labels{1, 2, 1},
                               Labels{1, 1, 1}, Labels{1, 2, 1, 2, 1}}) {
    Labels padded = labels;
    padded.resize(6);
    EXPECT_NEAR(losses::ctc(Tensor::from(padded, {1, 6}), p).item<double>(),
                by_enumeration(logits, kSteps, kClasses, labels), 1e-9);
  }
}

TEST(CTCTest, SequencesAreIndependent) {
  const std::vector<double> logits = wave(24);
  const Tensor both =
      losses::ctc(Tensor::from<int32_t>({1, 2, 2, 0}, {2, 2}), Tensor::from(logits, {2, 4, 3}));
  ASSERT_EQ(both.shape(), Shape({2}));
  EXPECT_NEAR(both.data<double>()[1],
              by_enumeration({logits.begin() + 12, logits.end()}, 4, 3, {2}), 1e-9);
}

TEST(CTCTest, SequencesThatDoNotFitHaveInfiniteLossesWithoutGradient) {
  const Tensor p = Tensor::from(wave(6), {1, 2, 3});
  GradientTape tape;
  tape.watch(p);
  const Tensor loss = losses::ctc(Tensor::from<int32_t>({1, 1}, {1, 2}), p);  // needs 3 steps
  EXPECT_EQ(loss.item<double>(), std::numeric_limits<double>::infinity());
  for (const double g : tape.input_gradient(loss, {p})[0].dense().to_vector<double>()) {
    EXPECT_EQ(g, 0);
  }
}

TEST(CTCTest, RejectsOtherShapesAndLabels) {
  const Tensor p = Tensor::zeros({2, 4, 3});
  EXPECT_THROW(losses::ctc(Tensor::from<int32_t>({1, 2}, {2}), p), ValueError);
  EXPECT_THROW(losses::ctc(Tensor::from<int32_t>({1, 2}, {1, 2}), p), ValueError);
  EXPECT_THROW(losses::ctc(Tensor::from<int32_t>({1, 2}, {2, 1}), p.cast(DType::kInt32)),
               TypeError);
  EXPECT_THAT(
      message_of<ValueError>([&] { losses::ctc(Tensor::from<int32_t>({1, 3}, {2, 1}), p); }),
      HasSubstr("received 3"));
}

TEST(CTCTest, IsMadeByKerasName) {
  EXPECT_EQ(losses::get("ctc")->class_name(), "CTC");
  EXPECT_EQ(to_json(losses::get("CTC")->get_config()),
            R"({"name": "ctc", "reduction": "sum_over_batch_size"})");
}

}  // namespace keel::ctc_test
