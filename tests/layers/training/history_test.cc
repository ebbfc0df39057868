#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/layers/training/callback.h>

#include "tests/support/errors.h"

namespace keel::history_test {

using testing::HasSubstr;
using testing_support::message_of;

TEST(HistoryTest, KeepsTheValuesOfEachEpoch) {
  History history;
  history.append(2, {{"loss", 0.5}, {"auc", 0.7}});
  history.append(3, {{"loss", 0.25}, {"auc", 0.8}});
  EXPECT_EQ(history.epochs(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(history["loss"], (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(history.names(), (std::vector<std::string>{"auc", "loss"}));
  EXPECT_EQ(history.last().at("auc"), 0.8);
  EXPECT_TRUE(history.contains("auc"));
}

TEST(HistoryTest, MissingValuesOfAnEpochAreNaN) {
  History history;
  history.append(0, {{"loss", 1}});
  history.append(1, {{"loss", 2}, {"late", 3}});
  history.append(2, {{"loss", 4}});
  EXPECT_TRUE(std::isnan(history["late"][0]));
  EXPECT_EQ(history["late"][1], 3);
  EXPECT_TRUE(std::isnan(history["late"][2]));
  EXPECT_EQ(history.last(), (Logs{{"loss", 4}}));
}

TEST(HistoryTest, UnknownNamesAreErrorsThatListTheKnownOnes) {
  History history;
  EXPECT_TRUE(history.last().empty());
  history.append(0, {{"loss", 1}, {"mae", 2}});
  EXPECT_THAT(message_of<ValueError>([&] { history["auc"]; }), HasSubstr("loss, mae"));
}

}  // namespace keel::history_test
