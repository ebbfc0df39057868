// Tests layers/visualization/internal/text_table.cc.
#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/visualization/visualization.h>

namespace keel::summary_test {

using testing::HasSubstr;
using testing::Not;

std::string text(const Model& model, const SummaryOptions& options = {}) {
  std::ostringstream out;
  summary(model, options, out);
  return out.str();
}

layers::Dense dense(int64_t units, const std::string& name) {
  return layers::Dense({.units = units, .name = name});
}

Sequential tower(const std::string& name) {
  return Sequential({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 784}}),
                                dense(64, name + "_a"), dense(10, name + "_b")},
                     .name = name});
}

TEST(SummaryTest, ListsLayersShapesAndParameters) {
  EXPECT_EQ(text(*tower("digits")),
            "Model: \"digits\"\n"
            "┏━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━┳━━━━━━━━━┓\n"
            "┃ Layer (type)     ┃ Output Shape ┃ Param # ┃\n"
            "┡━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━╇━━━━━━━━━┩\n"
            "│ digits_a (Dense) │ (None, 64)   │  50,240 │\n"
            "├──────────────────┼──────────────┼─────────┤\n"
            "│ digits_b (Dense) │ (None, 10)   │     650 │\n"
            "└──────────────────┴──────────────┴─────────┘\n"
            " Total params: 50,890 (198.79 KB)\n"
            " Trainable params: 50,890 (198.79 KB)\n"
            " Non-trainable params: 0 (0.00 B)\n");
}

TEST(SummaryTest, BranchesShowTheInputsOfLayers) {
  const Tensor a = layers::input({.shape = {4}, .name = "a"});
  const Tensor b = layers::input({.shape = {4}, .name = "b"});
  const layers::Dense shared = dense(2, "shared");
  const Tensor sum = shared(a) + shared(b);  // an op, which the table looks through
  const Functional model(
      {.inputs = Tensors::list({a, b}), .outputs = dense(1, "head")(sum), .name = "two"});
  const std::string table = text(*model);
  EXPECT_THAT(
      table, HasSubstr("│ a (InputLayer) │ (None, 4)    │       0 │ -                          │"));
  EXPECT_THAT(
      table, HasSubstr("│ shared (Dense) │ (None, 2)    │      10 │ a[0][0], b[0][0]           │"));
  EXPECT_THAT(
      table, HasSubstr("│ head (Dense)   │ (None, 1)    │       3 │ shared[0][0], shared[1][0] │"));
  EXPECT_THAT(table, HasSubstr(" Total params: 13 (52.00 B)"));
}

TEST(SummaryTest, FrozenLayersAreNotTrainable) {
  const Sequential model = tower("frozen");
  model->get_layer("frozen_a")->set_trainable(false);
  const std::string table = text(*model, {.show_trainable = true});
  EXPECT_THAT(table, HasSubstr(" Trainable params: 650 (2.54 KB)"));
  EXPECT_THAT(table, HasSubstr(" Non-trainable params: 50,240 (196.25 KB)"));
  EXPECT_THAT(table, HasSubstr("50,240 │ N "));
  EXPECT_THAT(table, HasSubstr("650 │ Y "));
}

TEST(SummaryTest, UnbuiltLayersHaveUnknownShapes) {
  const Sequential model({.layers = {dense(2, "later")}});
  EXPECT_THAT(text(*model), HasSubstr("│ later (Dense) │ ?            │ 0 (unbuilt) │"));
}

TEST(SummaryTest, NestedModelsAreExpandedOnRequest) {
  const Sequential model({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 784}}),
                                     tower("inner"), dense(1, "head")}});
  EXPECT_THAT(text(*model), Not(HasSubstr("inner_a")));
  EXPECT_THAT(text(*model, {.expand_nested = true}), HasSubstr("│    └ inner_a (Dense) "));
}

TEST(SummaryTest, MultibyteCellsAreAligned) {
  const Sequential model({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 784}}),
                                     tower("inner"), dense(1, "head")}});
  std::istringstream lines(text(*model, {.line_length = 44, .expand_nested = true}));
  std::set<int64_t> widths;
  for (std::string line; std::getline(lines, line);) {
    if (line[0] == ' ' || line[0] == 'M') continue;
    widths.insert(std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }));
  }
  EXPECT_EQ(widths, std::set<int64_t>{44});
}

TEST(SummaryTest, OptimizerVariablesAreCountedAfterAStep) {
  const Sequential model({.layers = {dense(1, "one")}, .name = "counted"});
  model->compile({.optimizer = "adam", .loss = "mse"});
  model->train_on_batch(Tensor::zeros({2, 3}), Tensor::zeros({2}));
  // Two slot variables for each of the four weights, the iteration and the learning rate.
  const std::string table = text(*model);
  EXPECT_THAT(table, HasSubstr(" Total params: 14 (60.00 B)\n Trainable params: 4 (16.00 B)\n"));
  EXPECT_THAT(table, HasSubstr(" Optimizer params: 10 (44.00 B)\n"));
}

TEST(SummaryTest, LongCellsAreWrapped) {
  const Sequential model({.layers = {dense(2, std::string(60, 'x'))}});
  const std::string table = text(*model, {.line_length = 60});
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    // Counts characters, not bytes.
    EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }), 60) << line;
  }
  EXPECT_EQ(std::ranges::count(table, 'x'), 60);
}

// The time of wrapping a name does not grow with the square of its length.
TEST(SummaryTest, VeryLongNamesAreWrapped) {
  const Tensor x = layers::input({.shape = {2}});
  const std::string name(2'000'000, 'n');
  const Functional model({.inputs = x, .outputs = layers::Dense({.units = 1, .name = name})(x)});
  std::ostringstream out;
  summary(*model, {.line_length = 100}, out);
  const std::string text = out.str();
  EXPECT_GE(std::ranges::count(text, 'n'), 2'000'000);
}

TEST(SummaryTest, SizesAreReadable) {
  EXPECT_EQ(format_bytes(0), "0.00 B");
  EXPECT_EQ(format_bytes(1023), "1023.00 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KB");
  EXPECT_EQ(format_bytes(5 * 1024 * 1024 / 2), "2.50 MB");
}

TEST(SummaryTest, LineLengthHasAMinimum) {
  EXPECT_THROW(text(*tower("short"), {.line_length = 39}), ValueError);
}

}  // namespace keel::summary_test
