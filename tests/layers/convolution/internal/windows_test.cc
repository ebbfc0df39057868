#include <keel/layers/convolution/internal/windows.h>

#include <gtest/gtest.h>

namespace keel::windows_test {

WindowOptions two_axes() {
  return {.kernel_size = {2, 3},
          .strides = {1, 2},
          .dilation_rate = {1, 1},
          .padding = "valid",
          .layout = {.axes = 2}};
}

TEST(WindowsTest, PaddingSameGivesOneWindowForEachStride) {
  for (int64_t size = 1; size < 8; ++size) {
    for (int64_t stride = 1; stride < 4; ++stride) {
      WindowOptions options = two_axes();
      options.padding = "same";
      options.strides = {1, stride};
      const auto windows = windows_for(options, {1, 5, size, 1}, "Test");
      EXPECT_EQ(windows[0].count(5), 5);
      EXPECT_EQ(windows[1].count(size), (size + stride - 1) / stride);
      EXPECT_LE(windows[1].after - windows[1].before, 1);
      EXPECT_GE(windows[1].after, windows[1].before);
    }
  }
}

TEST(WindowsTest, CausalWindowsEndAtTheirStep) {
  const WindowOptions options = {
      .kernel_size = {3}, .strides = {1}, .dilation_rate = {2}, .padding = "causal"};
  const auto windows = windows_for(options, {1, 5, 1}, "Test");
  EXPECT_EQ(windows[0].before, 4);
  EXPECT_EQ(windows[0].count(5), 5);
}

TEST(WindowsTest, ShapesFollowTheDataFormat) {
  WindowOptions options = two_axes();
  EXPECT_EQ(convolved_shape({kUnknown, 5, 6, 3}, 7, options, "Test"), Shape({kUnknown, 4, 2, 7}));
  EXPECT_EQ(kernel_shape(options, 3, 7), Shape({2, 3, 3, 7}));
  options.layout.channels_last = false;
  EXPECT_EQ(convolved_shape({2, 3, 5, kUnknown}, 7, options, "Test"), Shape({2, 7, 4, kUnknown}));
  EXPECT_EQ(channels_of({2, 3, 5, 6}, options, "Test"), 3);
  EXPECT_THROW(check_channels({2, 3, 5, 6}, 6, options, "Test"), ValueError);
  EXPECT_THROW(channels_of({2, kUnknown, 5, 6}, options, "Test"), ValueError);
  EXPECT_THROW(channels_of({2, 3, 5}, options, "Test"), ValueError);
}

TEST(WindowsTest, RejectsOptionsOutOfRange) {
  EXPECT_NO_THROW(check_window_options(two_axes(), false, "Test"));
  const auto expect_refused = [&](const auto& change) {
    WindowOptions bad = two_axes();
    change(bad);
    EXPECT_THROW(check_window_options(bad, false, "Test"), ValueError);
  };
  expect_refused([](WindowOptions& o) { o.kernel_size = {2, 0}; });
  expect_refused([](WindowOptions& o) { o.strides = {0, 1}; });
  expect_refused([](WindowOptions& o) { o.dilation_rate = {1, -1}; });
  expect_refused([](WindowOptions& o) { o.dilation_rate = {2, 1}; });
  expect_refused([](WindowOptions& o) { o.padding = "full"; });
  expect_refused([](WindowOptions& o) { o.padding = "causal"; });
  EXPECT_THROW(windows_for(two_axes(), {1, 1, 4, 1}, "Test"), ValueError);
}

}  // namespace keel::windows_test
