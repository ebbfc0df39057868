// Tests layers/visualization/internal/plot_axis.cc.
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/layers/training/callback.h>
#include <keel/layers/visualization/internal/plot_axis.h>
#include <keel/layers/visualization/visualization.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/texts.h"

namespace keel::history_plot_test {

using testing::HasSubstr;
using testing_support::count_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;

History two_epochs() {
  History history;
  history.append(0, {{"loss", 0.5}, {"auc", 0.7}, {"val_loss", 0.75}});
  history.append(1, {{"loss", 0.25}, {"auc", 0.8}});
  return history;
}

std::vector<std::string> labels(const PlotAxis& axis) {
  std::vector<std::string> out;
  for (const AxisTick& tick : axis.ticks()) out.push_back(tick.label);
  return out;
}

TEST(HistoryPlotTest, EachMetricHasAPanelWithTrainingAndValidationLines) {
  const std::string svg = history_svg(two_epochs(), {.title = "a < b"});
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_LT(svg.find(">loss</text>"), svg.find(">auc</text>"));
  // There are two lines for training; the validation has one value, drawn as a dot.
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "<circle"), 5u);
  EXPECT_EQ(count_of(svg, ">train</text>"), 2u);
  EXPECT_EQ(count_of(svg, ">validation</text>"), 1u);
  EXPECT_EQ(count_of(svg, ">epoch</text>"), 2u);
}

TEST(HistoryPlotTest, LinesPassThroughTheValues) {
  // The axis covers 0.2375 to 0.5125 on 220 pixels, from y = 254 up to y = 34.
  const std::string svg = history_svg(two_epochs(), {.names = {"loss"}, .log_scale = false});
  History only_loss;
  only_loss.append(0, {{"loss", 0.5}});
  only_loss.append(1, {{"loss", 0.25}});
  EXPECT_THAT(history_svg(only_loss), HasSubstr("<polyline points='66.0,44.0 422.0,244.0'"));
  EXPECT_EQ(count_of(svg, ">auc</text>"), 0u);
}

TEST(HistoryPlotTest, NonFiniteValuesAreSkipped) {
  History history;
  history.append(0, {{"loss", std::numeric_limits<double>::quiet_NaN()}});
  history.append(1, {{"loss", -1}});
  history.append(2, {{"loss", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(count_of(history_svg(history), "<circle"), 1u);
  EXPECT_EQ(count_of(history_svg(history, {.log_scale = true}), "<circle"), 0u);
}

TEST(HistoryPlotTest, UnknownNamesAndEmptyHistoriesAreRejected) {
  EXPECT_THROW(history_svg(History()), ValueError);
  EXPECT_THROW(history_svg(two_epochs(), {.names = {"mae"}}), ValueError);
}

TEST(HistoryPlotTest, SavesNumbersAndPicture) {
  const TemporaryFolder folder;
  two_epochs().save_csv(folder / "history.csv");
  EXPECT_EQ(read_bytes(folder / "history.csv"),
            "epoch,auc,loss,val_loss\n0,0.7,0.5,0.75\n1,0.8,0.25,NA\n");
  plot_history(two_epochs(), folder / "history.svg");
  EXPECT_EQ(std::filesystem::file_size(folder / "history.svg"), history_svg(two_epochs()).size());
  EXPECT_THROW(two_epochs().save_csv(folder / "no_such_folder/a.csv"), IoError);
  EXPECT_THROW(plot_history(two_epochs(), folder / "no_such_folder/a.svg"), IoError);
}

using Labels = std::vector<std::string>;

TEST(PlotAxisTest, TicksAreRoundNumbers) {
  using Scale = PlotAxis::Scale;
  EXPECT_EQ(labels(PlotAxis(Scale::kLinear, 0.03, 0.98, 5)), (Labels{"0.0", "0.5", "1.0"}));
  EXPECT_EQ(labels(PlotAxis(Scale::kLinear, 0, 100, 5)), (Labels{"0", "50", "100"}));
  EXPECT_EQ(labels(PlotAxis(Scale::kLinear, 0.71, 0.79, 5)),
            (Labels{"0.72", "0.74", "0.76", "0.78"}));
  EXPECT_EQ(labels(PlotAxis(Scale::kInteger, 1, 4, 8)), (Labels{"1", "2", "3", "4"}));
  EXPECT_EQ(labels(PlotAxis(Scale::kLog, 0.001, 10, 5)),
            (Labels{"0.001", "0.01", "0.1", "1", "10"}));
  EXPECT_EQ(labels(PlotAxis(Scale::kLog, 1, 30, 5)), (Labels{"1", "2", "5", "10", "20"}));
}

TEST(PlotAxisTest, PositionsSpanTheAxis) {
  const PlotAxis whole(PlotAxis::Scale::kInteger, 1, 5, 8);
  EXPECT_EQ(whole.position(1), 0);
  EXPECT_EQ(whole.position(5), 1);
  const PlotAxis one(PlotAxis::Scale::kInteger, 3, 3, 8);
  EXPECT_EQ(one.position(3), 0.5);
  EXPECT_NEAR(PlotAxis(PlotAxis::Scale::kLog, 1, 100, 5).position(10), 0.5, 1e-12);
}

}  // namespace keel::history_plot_test
