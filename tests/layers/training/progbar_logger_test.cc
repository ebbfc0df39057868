// Tests layers/training/internal/terminal_progress.cc.
#include <keel/layers/training/progbar_logger.h>

#include <regex>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/training/internal/terminal_progress.h>

namespace keel::progbar_logger_test {

using testing::HasSubstr;

// Returns the output of two epochs of four steps with validation.
std::string shown(Verbose verbose, std::optional<int64_t> steps) {
  std::ostringstream out;
  const callbacks::ProgbarLogger logger({.verbose = verbose, .output = &out});
  logger->set_params({.epochs = 2, .steps = steps});
  logger->on_train_begin();
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    logger->on_epoch_begin(epoch);
    for (int64_t step = 0; step < 4; ++step) {
      logger->on_train_batch_end(step, {{"auc", 0.25}, {"loss", 0.00012}});
    }
    logger->on_test_begin();
    logger->on_test_batch_end(0, {{"auc", 0.75}});
    logger->on_test_end({{"auc", 0.75}});
    Logs logs = {{"auc", 0.5}, {"loss", 0.00012}, {"val_auc", 0.75}, {"z", 1}};
    logger->on_epoch_end(epoch, logs);
  }
  logger->on_train_end({});
  return out.str();
}

void expect_match(const std::string& text, const std::string& pattern) {
  EXPECT_TRUE(std::regex_match(text, std::regex(pattern))) << text;
}

TEST(ProgbarLoggerTest, OneLineForEachEpoch) {
  const std::string line =
      R"(4/4 - \d+s - \d+(us|ms|s)/step - auc: 0.5000 - loss: 1.2000e-04 - z: 1.0000)"
      R"( - val_auc: 0.7500\n)";
  expect_match(shown(Verbose::kOneLine, 4), "Epoch 1/2\n" + line + "Epoch 2/2\n" + line);
}

TEST(ProgbarLoggerTest, StreamsAreNotTerminals) {
  EXPECT_EQ(shown(Verbose::kAuto, 4).substr(0, 16), "Epoch 1/2\n4/4 - ");
}

TEST(ProgbarLoggerTest, AnUnknownLengthIsLearnedInTheFirstEpoch) {
  expect_match(shown(Verbose::kOneLine, {}), "Epoch 1/2\n4/4 - .*\nEpoch 2/2\n4/4 - .*\n");
  const std::string bars = shown(Verbose::kProgressBar, {});
  EXPECT_THAT(bars, HasSubstr("\r      1/Unknown \x1b[1m0s\x1b[0m "));
  EXPECT_THAT(bars, HasSubstr("\r\x1b[1m1/4\x1b[0m "));
}

TEST(ProgbarLoggerTest, TheBarIsDrawnInPlaceAndEndsFull) {
  const std::string text = shown(Verbose::kProgressBar, 4);
  EXPECT_EQ(text.substr(0, 10), "Epoch 1/2\n");
  const std::string quarter =
      "\r\x1b[1m1/4\x1b[0m \x1b[32m━━━━━\x1b[0m\x1b[90m━━━━━━━━━━━━━━━\x1b[0m \x1b[1m0s\x1b[0m ";
  const std::string full =
      "\r\x1b[1m4/4\x1b[0m \x1b[32m━━━━━━━━━━━━━━━━━━━━\x1b[0m\x1b[90m\x1b[0m \x1b[1m0s\x1b[0m ";
  EXPECT_THAT(text, HasSubstr(quarter));
  EXPECT_THAT(text, HasSubstr(full));
  EXPECT_EQ(std::ranges::count(text, '\n'), 4);
  // Redraws are limited to twenty per second, so only the end of each part is drawn.
  EXPECT_EQ(std::ranges::count(text, '\r'), 4);
}

TEST(ProgbarLoggerTest, VerboseZeroPrintsNothing) { EXPECT_EQ(shown(Verbose::kSilent, 4), ""); }

TEST(ProgbarLoggerTest, EvaluateAndPredictPrintALine) {
  std::ostringstream out;
  const callbacks::ProgbarLogger logger({.verbose = Verbose::kOneLine, .output = &out});
  logger->set_params({.steps = 1});
  logger->on_test_begin();
  logger->on_test_batch_end(0, {{"loss", 2}});
  logger->on_test_end({{"loss", 2}});
  logger->on_predict_begin();
  logger->on_predict_batch_end(0);
  logger->on_predict_end();
  expect_match(out.str(), R"(1/1 - \d+s - \d+(us|ms|s)/step - loss: 2.0000\n)"
                          R"(1/1 - \d+s - \d+(us|ms|s)/step\n)");
}

TEST(TerminalProgressTest, NumbersAreShort) {
  EXPECT_EQ(format_value(0.31231), "0.3123");
  EXPECT_EQ(format_value(-12.5), "-12.5000");
  EXPECT_EQ(format_value(0), "0.0000e+00");
  EXPECT_EQ(format_value(0.00031234), "3.1234e-04");
  EXPECT_EQ(format_step_time(2.2), "2s");
  EXPECT_EQ(format_step_time(0.005), "5ms");
  EXPECT_EQ(format_step_time(80e-6), "80us");
  EXPECT_EQ(format_duration(42), "42s");
  EXPECT_EQ(format_duration(185), "3:05");
  EXPECT_EQ(format_duration(3723), "1:02:03");
}

}  // namespace keel::progbar_logger_test
