#include <keel/distribute/embedding/row_update.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/distribute/embedding/internal/table_shard.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

namespace keel::distribute::row_update_test {

using Values = std::vector<float>;

// Returns the weights after one step of SGD with learning rate 0.5.
Values stepped(RowUpdate update, Values weights, Values gradient) {
  update.rule = std::make_shared<SGDRule>();
  const int64_t row = 0;
  const TableRows rows = {.values = weights.data(),
                          .slots = nullptr,
                          .dim = std::ssize(weights),
                          .row_step = std::ssize(weights),
                          .rows = {&row, 1}};
  const Step step = {.learning_rate = 0.5};
  update.prepare(rows, gradient.data(), step);
  update.rule->update_rows(rows, gradient.data(), step);
  update.clip_weights(rows);
  return weights;
}

TEST(RowUpdateTest, RunsTheRuleAloneByDefault) {
  EXPECT_EQ(stepped({}, {1, -2, 3}, {2, 4, -100}), (Values{0, -4, 53}));
}

TEST(RowUpdateTest, ClipsGradientsOnOneSideOrBoth) {
  EXPECT_EQ(stepped({.clip_gradient_min = -1, .clip_gradient_max = 2}, {0, 0, 0}, {-8, 1, 8}),
            (Values{0.5, -0.5, -1}));
  EXPECT_EQ(stepped({.clip_gradient_max = 2}, {0, 0}, {-8, 8}), (Values{4, -1}));
  EXPECT_EQ(stepped({.clip_gradient_min = -2}, {0, 0}, {-8, 8}), (Values{1, -4}));
  EXPECT_EQ(stepped({.clip_gradient_min = 0, .clip_gradient_max = 0}, {3}, {8}), Values{3});
}

TEST(RowUpdateTest, WeightsDecayBeforeTheRule) {
  EXPECT_EQ(stepped({.weight_decay_factor = 0.25}, {4, -4}, {2, 0}), (Values{2, -3}));
  EXPECT_EQ(
      stepped({.weight_decay_factor = 0.25, .multiply_weight_decay_factor_by_learning_rate = true},
              {4, -4}, {2, 0}),
      (Values{2.5, -3.5}));
}

TEST(RowUpdateTest, ClipsWeightsAfterTheRule) {
  EXPECT_EQ(stepped({.clip_weight_min = -1, .clip_weight_max = 1}, {4, -4, 0.5}, {0, 0, 0}),
            (Values{1, -1, 0.5}));
  EXPECT_EQ(stepped({.clip_weight_max = 1}, {0.5}, {-8}), Values{1});
}

TEST(RowUpdateTest, WithoutAccumulationARowIsSteppedAsOftenAsItStandsThere) {
  const RowUpdate update = {.rule = std::make_shared<SGDRule>(),
                            .weight_decay_factor = 0.5,
                            .clip_weight_max = 1,
                            .use_gradient_accumulation = false};
  const Values start = {8, 4, 4};
  Values weights(3), gradients = {2, -4, 6};
  TableShard table(1, {}, LocalRows(Partition(3, {}), 0, 1));
  for (int64_t row = 0; row < 3; ++row) table.write(0, row, &start[row]);
  RowKeys keys(0);
  const std::vector<int64_t> rows = {2, 2, 0};
  table.update(update, rows, gradients.data(), {.learning_rate = 0.5}, keys);
  for (int64_t row = 0; row < 3; ++row) table.read(0, row, &weights[row]);
  // 4 -> 2 -> 1, then 0.5 -> 2.5, clipped; 8 -> 4 -> 1.
  EXPECT_EQ(weights, (Values{1, 4, 1}));
}

TEST(RowUpdateTest, ANotANumberStaysInItsElement) {
  const Values out = stepped({.clip_gradient_min = -1,
                              .clip_gradient_max = 1,
                              .clip_weight_min = -1,
                              .clip_weight_max = 1},
                             {0.5, 0.5}, {std::numeric_limits<float>::quiet_NaN(), 1});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 0);
}

}  // namespace keel::distribute::row_update_test
