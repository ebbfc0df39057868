#include <keel/layers/convolution/windows.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

namespace keel::windows_test {

using Floats = std::vector<float>;

TEST(WindowsTest, CoverStepsAtTheirStrideAndDilation) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5}, {1, 5, 1});
  const Tensor plain = extract_windows(x, {.size = 2});
  EXPECT_EQ(plain.shape(), Shape({1, 4, 2, 1}));
  EXPECT_EQ(plain.to_vector<float>(), Floats({1, 2, 2, 3, 3, 4, 4, 5}));
  EXPECT_EQ(extract_windows(x, {.size = 2, .stride = 3}).to_vector<float>(), Floats({1, 2, 4, 5}));
  EXPECT_EQ(extract_windows(x, {.size = 3, .dilation = 2}).to_vector<float>(), Floats({1, 3, 5}));
  EXPECT_EQ(
      extract_windows(x, {.size = 3, .stride = 3, .before = 1, .after = 1}).to_vector<float>(),
      Floats({0, 1, 2, 3, 4, 5}));
}

TEST(WindowsTest, GradientsAddUpWhereWindowsOverlap) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 4, 1});
  GradientTape outer;
  outer.watch(x);
  GradientTape tape;
  tape.watch(x);
  const Tensor sum = ops::sum(ops::square(extract_windows(x, {.size = 2})));
  const Tensor gradient = tape.input_gradient(sum, {x})[0].dense();
  EXPECT_EQ(gradient.to_vector<float>(), Floats({2, 8, 12, 8}));
  EXPECT_EQ(outer.input_gradient(gradient, {x})[0].dense().to_vector<float>(),
            Floats({2, 4, 4, 2}));
}

TEST(WindowsTest, PaddingSameGivesOneWindowForEachStride) {
  for (int64_t steps = 1; steps < 8; ++steps) {
    for (int64_t stride = 1; stride < 4; ++stride) {
      const Windows windows = windows_for(
          {.kernel_size = 3, .strides = stride, .padding = "same", .data_format = "channels_last"},
          steps, "Test");
      EXPECT_EQ(windows.count(steps), (steps + stride - 1) / stride);
      EXPECT_LE(windows.after - windows.before, 1);
      EXPECT_GE(windows.after, windows.before);
    }
  }
}

TEST(WindowsTest, RefusesOptionsOutOfRange) {
  const WindowOptions good = {.kernel_size = 2, .padding = "valid", .data_format = "channels_last"};
  EXPECT_NO_THROW(check_window_options(good, false, "Test"));
  const auto expect_refused = [&](const auto& change) {
    WindowOptions bad = good;
    change(bad);
    EXPECT_THROW(check_window_options(bad, false, "Test"), ValueError);
  };
  expect_refused([](WindowOptions& o) { o.kernel_size = 0; });
  expect_refused([](WindowOptions& o) { o.strides = 0; });
  expect_refused([](WindowOptions& o) { o.dilation_rate = -1; });
  expect_refused([](WindowOptions& o) { o.strides = o.dilation_rate = 2; });
  expect_refused([](WindowOptions& o) { o.padding = "full"; });
  expect_refused([](WindowOptions& o) { o.padding = "causal"; });
  expect_refused([](WindowOptions& o) { o.data_format = "last"; });
  EXPECT_THROW(windows_for(good, 1, "Test"), ValueError);
}

}  // namespace keel::windows_test
