// Tests autodiff/ops/convolution.cc, framework/kernels/convolution/convolution.cc and depthwise.cc.
#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::convolution_op_test {

using ops::SpatialWindow;
using ops::SpatialWindows;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::normal;

using Index = std::vector<int64_t>;

// One convolution. With `depthwise`, `filters` is the number of filters of a channel.
struct Sizes {
  Index input;
  SpatialWindows windows;
  int64_t batch = 2, channels = 1, filters = 1, groups = 1;
  bool depthwise = false;

  Shape x_shape() const { return Shape{batch} + Shape(input) + Shape{channels}; }
  Shape kernel_shape() const {
    Shape out;
    for (const SpatialWindow& window : windows) out = out + Shape{window.size};
    return out + Shape{depthwise ? channels : channels / groups, filters};
  }
  Tensor convolve(const Tensor& x, const Tensor& kernel) const {
    return depthwise ? ops::depthwise_convolution(x, kernel, windows)
                     : ops::convolution(x, kernel, {}, windows, groups);
  }
};

// Calls fn for all index vectors below `dims`, in row-major order.
void for_each_index(const Index& dims, const std::function<void(const Index&)>& fn) {
  const int64_t count = Shape(dims).size();
  for (int64_t i = 0; i < count; ++i) {
    Index index(dims.size());
    int64_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
    fn(index);
  }
}

int64_t offset(const Index& index, const Index& dims) {
  int64_t out = 0;
  for (size_t d = 0; d < dims.size(); ++d) out = out * dims[d] + index[d];
  return out;
}

// The formula of the documentation, one product after the other.
std::vector<double> expected_convolution(const Sizes& s, const Tensor& x, const Tensor& kernel) {
  Index counts, taps;
  for (size_t i = 0; i < s.windows.size(); ++i) {
    counts.push_back(s.windows[i].count(s.input[i]));
    taps.push_back(s.windows[i].size);
  }
  const int64_t filters = s.depthwise ? s.channels * s.filters : s.filters;
  const int64_t share = s.depthwise ? 1 : s.channels / s.groups;
  std::vector<double> out(s.batch * Shape(counts).size() * filters, 0.0);
  const auto add = [&](int64_t b, const Index& window, const Index& tap) {
    Index at(tap.size());
    for (size_t i = 0; i < tap.size(); ++i) {
      const SpatialWindow& w = s.windows[i];
      at[i] = window[i] * w.stride + tap[i] * w.dilation - w.before;
      if (at[i] < 0 || at[i] >= s.input[i]) return;
    }
    const int64_t pixel = b * Shape(s.input).size() + offset(at, s.input);
    const int64_t row = b * Shape(counts).size() + offset(window, counts);
    for (int64_t f = 0; f < filters; ++f) {
      const int64_t group = f / (s.depthwise ? s.filters : s.filters / s.groups);
      for (int64_t c = 0; c < share; ++c) {
        const int64_t weight = (offset(tap, taps) * share + c) * filters + f;
        out[row * filters + f] += x.data<double>()[pixel * s.channels + group * share + c] *
                                  kernel.data<double>()[weight];
      }
    }
  };
  for (int64_t b = 0; b < s.batch; ++b) {
    for_each_index(counts, [&](const Index& window) {
      for_each_index(taps, [&](const Index& tap) { add(b, window, tap); });
    });
  }
  return out;
}

std::vector<Sizes> all_sizes() {
  return {
      {.input = {9}, .windows = {{.size = 3}}, .channels = 2, .filters = 3},
      {.input = {9}, .windows = {{.size = 4, .stride = 3, .before = 2, .after = 1}}, .filters = 2},
      {.input = {9}, .windows = {{.size = 3, .dilation = 2, .before = 4}}, .channels = 3},
      {.input = {5, 7}, .windows = {{}, {}}, .channels = 3, .filters = 4},
      {.input = {5, 6},
       .windows = {{.size = 3, .before = 1, .after = 1}, {.size = 2, .stride = 2}},
       .channels = 4,
       .filters = 6,
       .groups = 2},
      {.input = {6, 5},
       .windows = {{.size = 2, .dilation = 2, .before = 1, .after = 1},
                   {.size = 3, .dilation = 2, .before = 2, .after = 2}},
       .channels = 2,
       .filters = 2},
      {.input = {2, 2},  // windows larger than the input
       .windows = {{.size = 5, .before = 2, .after = 2}, {.size = 5, .before = 4, .after = 4}},
       .filters = 2},
      {.input = {3, 4, 5},
       .windows = {{.size = 2}, {.size = 3, .stride = 2, .before = 1}, {.size = 2, .after = 1}},
       .channels = 2,
       .filters = 3},
      {.input = {3, 4, 4},
       .windows = {{.size = 2}, {.size = 2}, {.size = 2}},
       .channels = 4,
       .filters = 4,
       .groups = 4},
      {.input = {9}, .windows = {{.size = 3, .stride = 2}}, .channels = 3, .depthwise = true},
      {.input = {5, 6},
       .windows = {{.size = 3, .before = 1, .after = 1}, {.size = 2, .dilation = 2, .before = 2}},
       .channels = 70,
       .depthwise = true},
      {.input = {5, 6},
       .windows = {{.size = 3, .stride = 2, .before = 1}, {.size = 2, .stride = 2}},
       .channels = 3,
       .filters = 2,
       .depthwise = true},
      {.input = {3, 3, 4},
       .windows = {{.size = 2}, {.size = 2, .before = 1}, {.size = 3}},
       .channels = 2,
       .filters = 3,
       .depthwise = true},
  };
}

Tensor doubles(const Shape& shape, uint64_t seed) {
  return normal(shape, seed).cast(DType::kFloat64);
}

TEST(ConvolutionOpTest, MatchesItsFormula) {
  for (const Sizes& sizes : all_sizes()) {
    const Tensor x = doubles(sizes.x_shape(), 1), kernel = doubles(sizes.kernel_shape(), 2);
    const std::vector<double> expected = expected_convolution(sizes, x, kernel);
    testing_support::expect_near(sizes.convolve(x, kernel).to_vector<double>(), expected,
                                 {.absolute = 1e-12});
    const Tensor in_float = sizes.convolve(x.cast(DType::kFloat32), kernel.cast(DType::kFloat32));
    testing_support::expect_near(in_float.to_vector<float>(), expected, {.absolute = 1e-4});
  }
}

double inner(const Tensor& a, const Tensor& b) { return ops::sum(a * b).item<double>(); }

// sum(y * weights) is linear in x and in the kernel, so its gradient in x, multiplied by any other
// x, is its value for that x.
TEST(ConvolutionOpTest, GradientsAreItsTransposes) {
  for (const Sizes& sizes : all_sizes()) {
    const Tensor x = doubles(sizes.x_shape(), 3), kernel = doubles(sizes.kernel_shape(), 4);
    const Tensor other_x = doubles(sizes.x_shape(), 5);
    const Tensor other_kernel = doubles(sizes.kernel_shape(), 6);
    GradientTape tape;
    tape.watch(x);
    tape.watch(kernel);
    const Tensor y = sizes.convolve(x, kernel);
    const Tensor weights = doubles(y.shape(), 7);
    const auto gradients = tape.input_gradient(ops::sum(y * weights), {x, kernel});
    EXPECT_NEAR(inner(gradients[0].dense(), other_x),
                inner(sizes.convolve(other_x, kernel), weights), 1e-9);
    EXPECT_NEAR(inner(gradients[1].dense(), other_kernel),
                inner(sizes.convolve(x, other_kernel), weights), 1e-9);
  }
}

// The gradient of |g|^2, where g are the gradients of sum(y^3), against a finite difference.
TEST(ConvolutionOpTest, HasSecondGradients) {
  for (const Sizes& sizes : {all_sizes()[4], all_sizes()[11]}) {
    const Tensor x = doubles(sizes.x_shape(), 3), kernel = doubles(sizes.kernel_shape(), 4);
    const auto squared_norm = [&](const Tensor& at_x, const Tensor& at_kernel) {
      GradientTape tape;
      tape.watch(at_x);
      tape.watch(at_kernel);
      const Tensor y = sizes.convolve(at_x, at_kernel);
      const auto g = tape.input_gradient(ops::sum(y * y * y), {at_x, at_kernel});
      return ops::sum(ops::square(g[0].dense())) + ops::sum(ops::square(g[1].dense()));
    };
    GradientTape tape;
    tape.watch(x);
    tape.watch(kernel);
    const auto second = tape.input_gradient(squared_norm(x, kernel), {x, kernel});
    const Tensor dx = doubles(x.shape(), 8), dkernel = doubles(kernel.shape(), 9);
    constexpr double kStep = 1e-6;
    const double slope = (squared_norm(x + dx * kStep, kernel + dkernel * kStep).item<double>() -
                          squared_norm(x - dx * kStep, kernel - dkernel * kStep).item<double>()) /
                         (2 * kStep);
    const double expected = inner(second[0].dense(), dx) + inner(second[1].dense(), dkernel);
    EXPECT_NEAR(slope, expected, 1e-5 * std::abs(expected));
  }
}

TEST(ConvolutionOpTest, FusedBiasAndReluHaveTheBitsOfSeparateOps) {
  const Tensor x = normal({2, 9, 7, 5}, 1), kernel = normal({3, 3, 5, 6}, 2), bias = normal({6}, 3);
  const SpatialWindows windows = {{.size = 3, .before = 1}, {.size = 3, .stride = 2}};
  const auto fused = [&] { return ops::convolution(x, kernel, bias, windows, 1, true); };
  const auto separate = [&] { return ops::relu(ops::convolution(x, kernel, {}, windows) + bias); };
  testing_support::expect_same_bits(fused(), separate());
  const auto gradients = [&](const auto& function) {
    GradientTape tape;
    for (const Tensor& input : {x, kernel, bias}) tape.watch(input);
    return tape.input_gradient(ops::sum(ops::square(function())), {x, kernel, bias});
  };
  const auto of_fused = gradients(fused), of_separate = gradients(separate);
  for (size_t i = 0; i < 3; ++i) {
    testing_support::expect_same_bits(of_fused[i].dense(), of_separate[i].dense());
  }
}

// Restores the number of workers.
struct Workers {
  const int before = num_workers();
  ~Workers() { set_num_workers(before); }
};

TEST(ConvolutionOpTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const Workers workers;
  for (const bool depthwise : {false, true}) {
    const Sizes sizes = {.input = {33, 31},
                         .windows = {{.size = 3, .before = 1, .after = 1}, {.size = 3}},
                         .batch = 5,
                         .channels = 24,
                         .filters = depthwise ? 1 : 40,
                         .depthwise = depthwise};
    const Tensor x = normal(sizes.x_shape(), 1), kernel = normal(sizes.kernel_shape(), 2);
    const auto compute = [&](int count) {
      set_num_workers(count);
      GradientTape tape;
      tape.watch(x);
      tape.watch(kernel);
      const Tensor y = sizes.convolve(x, kernel);
      const auto g = tape.input_gradient(ops::sum(ops::square(y)), {x, kernel});
      return std::vector<Tensor>{y, g[0].dense(), g[1].dense()};
    };
    const std::vector<Tensor> alone = compute(1), together = compute(3);
    for (size_t i = 0; i < alone.size(); ++i) {
      testing_support::expect_same_bits(alone[i], together[i]);
    }
  }
}

// 1 + 2^-9 rounds to 1, so the products and the gradients are those of ones.
TEST(ConvolutionOpTest, RoundsOperandsToBFloat16InsideAnAutocastScope) {
  for (const bool depthwise : {false, true}) {
    const Sizes sizes = {.input = {4, 4},
                         .windows = {{.size = 2}, {.size = 2}},
                         .channels = 3,
                         .filters = 2,
                         .depthwise = depthwise};
    const auto compute = [&](float value, bool rounds) {
      const AutocastScope scope(rounds);
      const Tensor x = Tensor::full<float>(sizes.x_shape(), value);
      const Tensor kernel = Tensor::full<float>(sizes.kernel_shape(), value);
      GradientTape tape;
      tape.watch(x);
      tape.watch(kernel);
      const Tensor y = sizes.convolve(x, kernel);
      const auto g = tape.input_gradient(ops::sum(y), {x, kernel});
      return std::vector<Tensor>{y, g[0].dense(), g[1].dense()};
    };
    const std::vector<Tensor> rounded = compute(1 + 0x1p-9F, true), ones = compute(1, false);
    for (size_t i = 0; i < ones.size(); ++i) {
      testing_support::expect_same_bits(rounded[i], ones[i]);
    }
  }
}

TEST(ConvolutionOpTest, EmptyBatchesHaveEmptyResultsAndZeroGradients) {
  const Tensor x = Tensor::zeros({0, 4, 4, 2}), kernel = normal({3, 3, 2, 5}, 1);
  GradientTape tape;
  tape.watch(kernel);
  const Tensor y = ops::convolution(x, kernel, {}, {{.size = 3}, {.size = 3}});
  EXPECT_EQ(y.shape(), Shape({0, 2, 2, 5}));
  const Tensor gradient = tape.input_gradient(ops::sum(y), {kernel})[0].dense();
  EXPECT_EQ(gradient.to_vector<float>(), std::vector<float>(90, 0.0F));
}

TEST(ConvolutionOpTest, TransposedConvolutionsHaveTheRequestedSize) {
  const SpatialWindows windows = {{.size = 2, .stride = 2}};
  const Tensor y = Tensor::from<float>({1, 2}, {1, 2, 1});
  const Tensor kernel = Tensor::full<float>({2, 1, 1}, 1);
  EXPECT_EQ(ops::transposed_convolution(y, kernel, windows, {4}).to_vector<float>(),
            (std::vector<float>{1, 1, 2, 2}));
  EXPECT_EQ(ops::transposed_convolution(y, kernel, windows, {5}).to_vector<float>(),
            (std::vector<float>{1, 1, 2, 2, 0}));
  EXPECT_THROW(ops::transposed_convolution(y, kernel, windows, {6}), ValueError);
  EXPECT_THROW(ops::transposed_convolution(y, kernel, windows, {4, 4}), ValueError);
}

TEST(ConvolutionOpTest, ErrorsNameTheShapes) {
  const Tensor x = Tensor::zeros({1, 5, 2}), kernel = Tensor::zeros({3, 2, 4});
  const SpatialWindows three = {{.size = 3}};
  EXPECT_THAT(message_of<ValueError>([&] { ops::convolution(x, kernel, {}, {{.size = 2}}); }),
              HasSubstr("kernel of shape (3, 2, 4)"));
  EXPECT_THAT(message_of<ValueError>(
                  [&] { ops::convolution(Tensor::zeros({1, 5, 3}), kernel, {}, three); }),
              HasSubstr("2 channels, received shape (1, 5, 3)"));
  EXPECT_THAT(
      message_of<ValueError>([&] { ops::convolution(x, kernel, Tensor::zeros({3}), three); }),
      HasSubstr("bias of shape (3,)"));
  EXPECT_THROW(ops::convolution(x, kernel, {}, three, 3), ValueError);
  EXPECT_THROW(ops::convolution(x, kernel.cast(DType::kFloat64), {}, three), TypeError);
}

}  // namespace keel::convolution_op_test
