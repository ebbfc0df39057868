#include <keel/framework/internal/window_functions.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel::window_functions_test {

using internal::cosine_window;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::Optional;

// The numbers are those of numpy.hanning(5), numpy.hamming(3) and numpy.blackman(5).
TEST(WindowFunctionsTest, SymmetricWindows) {
  const auto near = [](double x) { return DoubleNear(x, 1e-15); };
  EXPECT_THAT(cosine_window("hann", 5, false),
              Optional(ElementsAre(near(0), near(.5), near(1), near(.5), near(0))));
  EXPECT_THAT(cosine_window("hamming", 3, false),
              Optional(ElementsAre(near(.08), near(1), near(.08))));
  EXPECT_THAT(cosine_window("blackman", 5, false),
              Optional(ElementsAre(near(0), near(.34), near(1), near(.34), near(0))));
  EXPECT_THAT(cosine_window("boxcar", 2, false), Optional(ElementsAre(1, 1)));
}

TEST(WindowFunctionsTest, APeriodicWindowLacksTheLastElementOfALongerOne) {
  auto longer = *cosine_window("blackman", 9, false);
  longer.pop_back();
  EXPECT_EQ(cosine_window("blackman", 8, true), longer);
}

TEST(WindowFunctionsTest, OneElementIsOneAndNoneIsEmpty) {
  for (const char* name : {"hann", "hamming", "blackman", "boxcar"}) {
    EXPECT_THAT(cosine_window(name, 1, false), Optional(ElementsAre(DoubleNear(1, 1e-15)))) << name;
    EXPECT_THAT(cosine_window(name, 0, true), Optional(ElementsAre())) << name;
  }
}

TEST(WindowFunctionsTest, OtherNamesHaveNoWindow) {
  EXPECT_EQ(cosine_window("flat", 4, false), std::nullopt);
}

}  // namespace keel::window_functions_test
