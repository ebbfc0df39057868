// Tests functions of autodiff/keras_ops/ that have no records of Keras: control flow, and gradients
// of factorizations. tests/conformance/ops_replay_test.cc tests the others.
#include <keel/autodiff/keras_ops/core.h>

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/linalg.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

namespace keel::keras_ops_core_test {

namespace K = keras_ops;
using testing::ElementsAre;

Tensor numbers(std::initializer_list<float> values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

TEST(KerasOpsCoreTest, LoopsCarryTheirValue) {
  const Tensor sum = K::fori_loop(
      1, 4, [](int64_t i, const Tensor& v) { return v * double(i); }, Tensor::scalar(2.0f));
  EXPECT_EQ(sum.item<float>(), 12);
  const int reached = K::while_loop([](int v) { return v < 10; }, [](int v) { return v + 3; }, 0);
  EXPECT_EQ(reached, 12);
}

TEST(KerasOpsCoreTest, ScanReturnsCarryAndResults) {
  const auto add = [](const Tensor& carry, const Tensor& x) {
    return std::pair(carry + x, carry * x);
  };
  const auto [carry, ys] = K::scan(add, Tensor::scalar(1.0f), numbers({2, 3, 4}));
  EXPECT_EQ(carry.item<float>(), 10);
  EXPECT_THAT(ys.to_vector<float>(), ElementsAre(2, 9, 24));
  const auto [last, reversed] = K::scan(add, Tensor::scalar(1.0f), numbers({2, 3, 4}), true);
  EXPECT_THAT(reversed.to_vector<float>(), ElementsAre(16, 15, 4));
  EXPECT_EQ(last.item<float>(), 10);
}

TEST(KerasOpsCoreTest, AssociativeScanRunsFromEitherEnd) {
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  EXPECT_THAT(K::associative_scan(add, numbers({1, 2, 3})).to_vector<float>(),
              ElementsAre(1, 3, 6));
  EXPECT_THAT(K::associative_scan(add, numbers({1, 2, 3}), true).to_vector<float>(),
              ElementsAre(6, 5, 3));
}

TEST(KerasOpsCoreTest, MapAppliesToSlicesAndSwitchClamps) {
  const auto twice = [](const Tensor& x) { return x * 2.0; };
  EXPECT_THAT(K::map(twice, numbers({1, 2})).to_vector<float>(), ElementsAre(2, 4));
  EXPECT_THAT(K::vectorized_map(twice, numbers({1, 2})).to_vector<float>(), ElementsAre(2, 4));
  const std::vector<std::function<int(int)>> branches = {[](int v) { return v; },
                                                         [](int v) { return -v; }};
  EXPECT_EQ(K::switch_case(1, branches, 5), -5);
  EXPECT_EQ(K::switch_case(7, branches, 5), -5);
  EXPECT_EQ(K::switch_case(-1, branches, 5), 5);
}

TEST(KerasOpsCoreTest, NumbersAdoptTheDtypeOfTensors) {
  EXPECT_EQ(K::add(numbers({1}), 2).dtype(), DType::kFloat32);
  EXPECT_EQ(K::add(Tensor::scalar<int32_t>(1), 0.5).dtype(), DType::kFloat32);
  EXPECT_EQ(K::add(Tensor::scalar<int64_t>(1), 1).dtype(), DType::kInt64);
  EXPECT_EQ(K::result_type({Tensor::scalar<uint8_t>(1), Tensor::scalar<int8_t>(1)}), DType::kInt32);
}

TEST(KerasOpsCoreTest, ErrorsNameTheProblem) {
  EXPECT_THROW(K::get_item(numbers({1, 2}), {int64_t{2}}), ValueError);
  EXPECT_THROW(K::slice(numbers({1, 2}), {1}, {2}), ValueError);
  EXPECT_THROW(K::scatter(Tensor::from<int32_t>({3}, {1, 1}), numbers({1}), {2}), ValueError);
  EXPECT_THROW(K::scatter_update(numbers({1}), Tensor::from<int32_t>({0}, {1, 1}), numbers({1}),
                                 std::string("mean")),
               ValueError);
  EXPECT_THROW(K::sum(numbers({1}), 1), ValueError);
  EXPECT_THROW(K::inv(K::zeros({2, 2})), ValueError);
  EXPECT_THROW(K::cholesky(-K::eye(2)), ValueError);
  EXPECT_THROW(K::top_k(numbers({1, 2}), 3), ValueError);
  EXPECT_THROW(K::fmod(Tensor::scalar(std::string("a")), 1), TypeError);
}

// Compares the gradient of sum(weights * factor) in x with central differences.
void expect_gradient(const std::function<Tensor(const Tensor&)>& factor, const Tensor& x) {
  const auto total = [&](const Tensor& at) {
    const Tensor y = factor(at);
    std::vector<double> weights;
    for (int64_t i = 0; i < y.size(); ++i) weights.push_back(0.3 + 0.7 * static_cast<double>(i));
    return ops::sum(y * Tensor::from(weights, y.shape()));
  };
  GradientTape tape;
  tape.watch(x);
  const Tensor gradient = tape.input_gradient(total(x), {x})[0].dense();
  const std::vector<double> values = x.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    double ends[2];
    for (const int side : {0, 1}) {
      std::vector<double> moved = values;
      moved[i] += side == 0 ? -1e-5 : 1e-5;
      ends[side] = total(Tensor::from(moved, x.shape())).item<double>();
    }
    EXPECT_NEAR(gradient.to_vector<double>()[i], (ends[1] - ends[0]) / 2e-5, 1e-5) << i;
  }
}

TEST(KerasOpsCoreTest, FactorizationsHaveGradients) {
  const Tensor x = Tensor::from({2.0, 0.3, -0.4, 1.5, 0.7, 0.2}, {3, 2});
  expect_gradient([](const Tensor& m) { return K::qr(m).first; }, x);
  expect_gradient([](const Tensor& m) { return K::qr(m).second; }, x);
  const Tensor square = Tensor::from({2.0, 0.3, -0.4, 0.3, 5.0, 0.7, -0.4, 0.7, 9.0}, {3, 3});
  const auto symmetric = [](const Tensor& m) { return (m + ops::transpose(m)) * 0.5; };
  expect_gradient([&](const Tensor& m) { return K::cholesky(symmetric(m)); }, square);
  expect_gradient([&](const Tensor& m) { return K::eigh(symmetric(m)).first; }, square);
  expect_gradient([&](const Tensor& m) { return K::eigh(symmetric(m)).second; }, square);
}

TEST(KerasOpsCoreTest, QrHasAGradientForWideMatricesInBothModes) {
  const Tensor x = Tensor::from({2.0, 0.3, -0.4, 1.5, 0.7, 0.2, 0.9, -1.1}, {2, 4});
  for (const char* const mode : {"reduced", "complete"}) {
    expect_gradient([&](const Tensor& m) { return K::qr(m, mode).first; }, x);
    expect_gradient([&](const Tensor& m) { return K::qr(m, mode).second; }, x);
  }
  const auto complete = [](const Tensor& m) { return K::qr(m, "complete").second; };
  EXPECT_THROW(expect_gradient(complete, ops::transpose(x)), NotImplementedError);
}

TEST(KerasOpsCoreTest, RemaindersHaveGradients) {
  const Tensor x = Tensor::from({7.3, -7.3, 2.5, -0.4}, {4});
  const Tensor y = Tensor::from({2.0, 2.2, -1.1, -3.0}, {4});
  expect_gradient([&](const Tensor& a) { return K::mod(a, y); }, x);
  expect_gradient([&](const Tensor& b) { return K::mod(x, b); }, y);
  expect_gradient([&](const Tensor& a) { return K::fmod(a, y); }, x);
  expect_gradient([&](const Tensor& b) { return K::fmod(x, b); }, y);
}

TEST(KerasOpsCoreTest, GammaincHasAGradientInItsSecondOperandOnly) {
  const Tensor a = Tensor::from({0.7, 2.0, 5.5}, {3}), x = Tensor::from({0.4, 3.0, 5.0}, {3});
  expect_gradient([&](const Tensor& at) { return K::gammainc(a, at); }, x);
  EXPECT_THROW(expect_gradient([&](const Tensor& at) { return K::gammainc(at, x); }, a),
               NotImplementedError);
}

// Position 1 is updated twice, position 3 never.
TEST(KerasOpsCoreTest, ScatterUpdateHasGradientsForEveryReduction) {
  const Tensor inputs = Tensor::from({0.5, -2.0, 3.0, 4.0}, {4});
  const Tensor updates = Tensor::from({1.5, -1.0, -2.5}, {3});
  const Tensor indices = Tensor::from<int32_t>({0, 1, 1}, {3, 1});
  for (const char* const reduction : {"add", "mul", "min", "max"}) {
    expect_gradient(
        [&](const Tensor& x) { return K::scatter_update(x, indices, updates, reduction); }, inputs);
    expect_gradient(
        [&](const Tensor& u) { return K::scatter_update(inputs, indices, u, reduction); }, updates);
  }
  GradientTape tape;
  const Tensor ones = Tensor::from({1.0, 1.0, 1.0}, {3});
  tape.watch(ones);
  const Tensor y = K::scatter_update(Tensor::from({1.0}, {1}), Tensor::zeros({3, 1}, DType::kInt32),
                                     ones, "max");
  EXPECT_THAT(tape.input_gradient(ops::sum(y), {ones})[0].dense().to_vector<double>(),
              ElementsAre(0.25, 0.25, 0.25));  // the input shares, too
}

// Square, wide and tall matrices, and a batch; all of them exchange rows.
TEST(KerasOpsCoreTest, LuFactorHasAGradientForMatricesOfAnyShape) {
  const auto lu = [](const Tensor& m) { return K::lu_factor(m).first; };
  const Tensor square = Tensor::from({0.3, 2.0, -0.4, 1.5, 0.7, 0.2, -2.5, 0.4, 0.9}, {3, 3});
  EXPECT_EQ(K::lu_factor(square).second.to_vector<int32_t>(), (std::vector<int32_t>{2, 2, 2}));
  expect_gradient(lu, square);
  const std::vector<double> values = {0.3, 2.0, -0.4, 1.5, 0.7, 0.2, -2.5, 0.4};
  expect_gradient(lu, Tensor::from(values, {2, 4}));
  expect_gradient(lu, Tensor::from(values, {4, 2}));
  expect_gradient(lu, Tensor::from(values, {2, 2, 2}));
  expect_gradient(lu, Tensor::from({1.5, 0.7, 0.2}, {1, 3}));
  expect_gradient(lu, Tensor::from({0.7, 1.5, 0.2}, {3, 1}));
}

TEST(KerasOpsCoreTest, SymbolicTensorsGetSpecs) {
  const Tensor x = Tensor::symbolic({.shape = {kUnknown, 3}, .dtype = DType::kInt32});
  const NoGraphScope scope;
  const Tensor y = K::exp(x);
  EXPECT_TRUE(y.is_symbolic());
  EXPECT_EQ(y.dtype(), DType::kFloat32);
  EXPECT_EQ(K::argsort(x).shape(), Shape({kUnknown, 3}));
}

}  // namespace keel::keras_ops_core_test
