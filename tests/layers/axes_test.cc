#include <keel/layers/axes.h>

#include <gtest/gtest.h>

namespace keel::axes_test {

template <class T>
Config round_trip(const Config& config) {
  T value;
  decode(config, value);
  return encode(value);
}

TEST(AxesTest, ConfigsKeepTheirForm) {
  EXPECT_EQ(round_trip<Axes>(-1), Config(-1));
  EXPECT_EQ(round_trip<Axes>(Config::list({1, 2})), Config::list({1, 2}));
  EXPECT_THROW(round_trip<Axes>("a"), TypeError);
}

TEST(AxesTest, NormalizedAxesAscendFromZero) {
  EXPECT_EQ(Axes({-1, 1}).normalized({2, 3, 4}, "Test"), (std::vector<int>{1, 2}));
}

TEST(AxesTest, RejectAxesOutOfRange) {
  EXPECT_THROW(Axes(2).normalized({2, 3}, "Test"), ValueError);
  EXPECT_THROW(Axes(-3).normalized({2, 3}, "Test"), ValueError);
  EXPECT_THROW(Axes({1, -1}).normalized({2, 3}, "Test"), ValueError);
  EXPECT_THROW(Axes(std::vector<int>{}).normalized({2, 3}, "Test"), ValueError);
}

TEST(Length1DTest, AreWrittenAsAList) {
  EXPECT_EQ(round_trip<Length1D>(3), Config::list({3}));
  EXPECT_EQ(round_trip<Length1D>(Config::list({3})), Config::list({3}));
  EXPECT_THROW(round_trip<Length1D>(Config::list({3, 3})), ValueError);
}

TEST(LengthsTest, OneNumberSetsAllAxes) {
  EXPECT_EQ(round_trip<Length2D>(3), Config::list({3, 3}));
  EXPECT_EQ(round_trip<Length3D>(Config::list({1, 2, 3})), Config::list({1, 2, 3}));
  EXPECT_THROW(round_trip<Length2D>(Config::list({1, 2, 3})), ValueError);
  EXPECT_EQ(Length2D({4, 5})[1], 5);
  EXPECT_THROW(Length2D({4}), ValueError);
}

TEST(PaddingsTest, AreWrittenAsPairs) {
  const Config pair = Config::list({1, 2});
  EXPECT_EQ(round_trip<Padding2D>(3), Config::list({Config::list({3, 3}), Config::list({3, 3})}));
  EXPECT_EQ(round_trip<Padding2D>(Config::list({pair, 4})),
            Config::list({pair, Config::list({4, 4})}));
  EXPECT_THROW(round_trip<Padding3D>(Config::list({pair, pair})), ValueError);
  EXPECT_EQ(Padding2D({{1, 2}, 3})[1].before, 3);
}

TEST(Padding1DTest, AreWrittenAsAPair) {
  EXPECT_EQ(round_trip<Padding1D>(3), Config::list({3, 3}));
  EXPECT_EQ(round_trip<Padding1D>(Config::list({1, 2})), Config::list({1, 2}));
  EXPECT_THROW(round_trip<Padding1D>(Config::list({3})), ValueError);
}

TEST(ScalarOrListTest, ConfigsKeepTheirForm) {
  EXPECT_EQ(round_trip<ScalarOrList>(2.5), Config(2.5));
  EXPECT_EQ(round_trip<ScalarOrList>(Config::list({1, 2.5})), Config::list({1.0, 2.5}));
  EXPECT_EQ(round_trip<ScalarOrList>(Config::list({Config::list({1}), 2})),
            Config::list({1.0, 2.0}));
  EXPECT_THROW(round_trip<ScalarOrList>("a"), TypeError);
}

TEST(ScalarOrListTest, AreAScalarOrAVector) {
  EXPECT_EQ(ScalarOrList(2).tensor(DType::kFloat32).shape(), Shape({}));
  EXPECT_EQ(ScalarOrList({2, 3}).tensor(DType::kFloat64).to_vector<double>(),
            (std::vector<double>{2, 3}));
}

}  // namespace keel::axes_test
