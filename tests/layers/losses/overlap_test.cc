#include <keel/layers/losses/overlap.h>

#include <gtest/gtest.h>

namespace keel::overlap_test {

Tensor labels() { return Tensor::from<double>({1, 1, 0, 0, 1, 0}, {2, 3}); }
Tensor predictions() { return Tensor::from<double>({1, 0, 1, 0, 1, 0}, {2, 3}); }

TEST(OverlapLossTest, DiceIsOneLessTwiceTheSharedPart) {
  EXPECT_NEAR(losses::dice(labels(), predictions()).item<double>(), 1 - 4.0 / 6, 1e-7);
  const Tensor rows = losses::dice(labels(), predictions(), {1});
  EXPECT_NEAR(rows.data<double>()[0], .5, 1e-7);
  EXPECT_NEAR(rows.data<double>()[1], 0, 1e-7);
}

TEST(OverlapLossTest, TverskyWeighsWhatIsExtraAndMissing) {
  EXPECT_NEAR(losses::tversky(labels(), predictions()).item<double>(), 1 - 4.0 / 6, 1e-7);
  EXPECT_NEAR(losses::tversky(labels(), predictions(), 1, 3).item<double>(), 1 - 2.0 / 6, 1e-7);
  // Only a false negative is added.
  const Tensor none = Tensor::from<double>({1, 0, 0, 0, 1, 0}, {2, 3});
  EXPECT_NEAR(losses::tversky(labels(), none, 1, 3).item<double>(), 1 - 2.0 / 5, 1e-7);
}

TEST(OverlapLossTest, WholeBatchesAreOneLoss) {
  for (const char* reduction : {"sum", "sum_over_batch_size", "none"}) {
    const losses::Dice loss({.reduction = reduction});
    EXPECT_EQ(loss->call(labels(), predictions()).shape(), Shape({}));
  }
  const losses::Dice by_row({.axis = std::vector<int>{1}});
  EXPECT_NEAR(by_row->call(labels(), predictions()).item<double>(), .25, 1e-7);
  // With weights, the loss of the whole batch counts once per row.
  EXPECT_NEAR(losses::Dice({})
                  ->call(labels(), predictions(), Tensor::from<double>({1, 0}, {2}))
                  .item<double>(),
              1.0 / 6, 1e-7);
}

}  // namespace keel::overlap_test
