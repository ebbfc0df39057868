// Tests autodiff/operation.cc.
#include <keel/autodiff/tape.h>

#include <thread>

#include <gtest/gtest.h>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/ops.h>

#include "tests/autodiff/small_tensors.h"
#include "tests/support/errors.h"

namespace keel::tape_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

Variable variable(std::initializer_list<float> values, bool trainable = true) {
  return Variable(row(values), {.name = "v", .trainable = trainable});
}

TEST(GradientTapeTest, DifferentiatesWithRespectToVariables) {
  const Variable w = variable({2, 3}), b = variable({1, 1});
  GradientTape tape;
  const Tensor loss = ops::sum(ops::square(w.read()) + b.read());
  const auto gradients = tape.gradient(loss, {w, b});
  expect_floats(gradients[0].dense(), {2}, {4, 6});
  expect_floats(gradients[1].dense(), {2}, {1, 1});
}

TEST(GradientTapeTest, SumsNonScalarTargets) {
  const Variable w = variable({2, 3});
  GradientTape tape;
  expect_floats(tape.gradient(ops::square(w), {w})[0].dense(), {2}, {4, 6});
}

TEST(GradientTapeTest, ScalesATargetByTheOutputGradient) {
  const Variable w = variable({2, 3});
  GradientTape tape;
  const Tensor y = ops::square(w);
  const auto gradients = tape.gradient(y, {w}, {.output_gradient = row({10, 1})});
  expect_floats(gradients[0].dense(), {2}, {40, 6});
}

TEST(GradientTapeTest, RejectsAnOutputGradientOfAnotherShape) {
  const Variable w = variable({2, 3});
  GradientTape tape;
  const Tensor y = ops::square(w);
  EXPECT_THROW(tape.gradient(y, {w}, {.output_gradient = row({1})}), ValueError);
}

TEST(GradientTapeTest, RejectsAnOutputGradientOfWrongDType) {
  const Variable w = variable({2, 3});
  GradientTape tape;
  const Tensor y = ops::square(w);
  const Tensor wrong = Tensor::zeros({2}, DType::kFloat64);
  EXPECT_THROW(tape.gradient(y, {w}, {.output_gradient = wrong}), TypeError);
}

// Returns its first input, and as gradients those that it was created with.
class Careless final : public Op {
 public:
  explicit Careless(std::vector<Gradient> gradients)
      : Op("Careless"), gradients_(std::move(gradients)) {}
  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {in[0].aliased()};
  }
  std::vector<Gradient> vjp(const VjpArgs&) const override { return gradients_; }

 private:
  const std::vector<Gradient> gradients_;
};

// Returns the error of an op with inputs of shapes (2,) and (3,) whose vjp() returns `gradients`.
template <class Expected>
std::string error_of(std::vector<Gradient> gradients) {
  const Variable a = variable({2, 3}), b = variable({4, 5, 6});
  GradientTape tape;
  const Tensor y = dispatch1(Careless(std::move(gradients)), {a, b});
  return message_if_any<Expected>([&] { tape.gradient(y, {a, b}); });
}

TEST(GradientTapeTest, RejectsAnotherNumberOfGradientsThanInputsOfAnOp) {
  const Gradient good = row({1, 1});
  const std::string said =
      "GradientTape: Careless must return a gradient for each of 2 inputs, received ";
  EXPECT_EQ(error_of<ValueError>({good}), said + "1");
  EXPECT_EQ(error_of<ValueError>({good, {}, {}}), said + "3");
  EXPECT_EQ(error_of<Error>({good, {}}), "");
}

TEST(GradientTapeTest, RejectsAGradientOfAnotherShapeThanTheInputOfAnOp) {
  const std::string said =
      "GradientTape: the gradient that Careless returns for input 1 must have its shape (3,), "
      "received ";
  EXPECT_EQ(error_of<ValueError>({{}, row({1, 1})}), said + "(2,)");
  EXPECT_EQ(error_of<ValueError>({{}, Tensor::full<float>({}, 1)}), said + "()");
  const IndexedSlices slices = {
      .ids = Tensor::zeros({1}, DType::kInt64), .values = Tensor::zeros({1}), .dense_shape = {2}};
  EXPECT_EQ(error_of<ValueError>({{}, slices}), said + "(2,)");
}

TEST(GradientTapeTest, RejectsAGradientOfWrongDTypeThanTheInputOfAnOp) {
  EXPECT_EQ(error_of<TypeError>({{}, Tensor::zeros({3}, DType::kFloat64)}),
            "GradientTape: the gradient that Careless returns for input 1 must be float32, "
            "received float64");
}

TEST(GradientTapeTest, CanBeUsedOnceUnlessPersistent) {
  const Variable w = variable({2});
  GradientTape once;
  const Tensor y = ops::square(w);
  once.gradient(y, {w});
  EXPECT_THROW(once.gradient(y, {w}), RuntimeError);

  GradientTape often({.persistent = true});
  const Tensor a = ops::square(w), b = a * a;
  expect_floats(often.gradient(a, {w})[0].dense(), {1}, {4});
  expect_floats(often.gradient(b, {w})[0].dense(), {1}, {32});
  const Tensor c = a * w;
  expect_floats(often.gradient(c, {w})[0].dense(), {1}, {12});
}

TEST(GradientTapeTest, WatchesTensorsOnRequest) {
  const Tensor x = row({3}), constant = row({5});
  GradientTape tape;
  tape.watch(x);
  const auto gradients = tape.input_gradient(x * x * constant, {x, constant});
  expect_floats(gradients[0].dense(), {1}, {30});
  EXPECT_FALSE(gradients[1]);
}

TEST(GradientTapeTest, RejectsToWatchIntegers) {
  GradientTape tape;
  EXPECT_THROW(tape.watch(ids({1})), TypeError);
}

TEST(GradientTapeTest, WatchesOnlyExplicitTensorsOnRequest) {
  const Variable a = variable({2}), b = variable({3});
  GradientTape tape({.watch_accessed_variables = false});
  tape.watch(a);
  const auto gradients = tape.gradient(a.read() * b.read(), {a, b});
  expect_floats(gradients[0].dense(), {1}, {3});
  EXPECT_FALSE(gradients[1]);
}

TEST(GradientTapeTest, LeavesOutVariablesThatAreNotTrainable) {
  const Variable frozen = variable({2}, false);
  GradientTape tape;
  EXPECT_FALSE(tape.gradient(ops::square(frozen), {frozen})[0]);
  GradientTape told;
  told.watch(frozen);
  expect_floats(told.gradient(ops::square(frozen), {frozen})[0].dense(), {1}, {4});
}

TEST(GradientTapeTest, AddsTheGradientsOfTwoReads) {
  const Variable w = variable({3});
  GradientTape tape;
  const Tensor first = w.read(), second = w.read();
  expect_floats(tape.gradient(first * second, {w})[0].dense(), {1}, {6});
}

TEST(GradientTapeTest, AddsTheGradientsOfReadsAroundAnAssignment) {
  const Variable w = variable({3});
  GradientTape tape;
  const Tensor before = ops::square(w);
  w.assign(row({10}));
  const Tensor y = before + ops::square(w);
  expect_floats(tape.gradient(y, {w})[0].dense(), {1}, {26});
}

TEST(GradientTapeTest, UnconnectedSourcesHaveNoneOrZeroGradients) {
  const Variable w = variable({2}), other = variable({5, 6});
  GradientTape tape({.persistent = true});
  const Tensor y = ops::square(w);
  EXPECT_FALSE(tape.gradient(y, {other})[0]);
  const auto zeros =
      tape.gradient(y, {other}, {.unconnected_gradients = UnconnectedGradients::kZero});
  expect_floats(zeros[0].dense(), {2}, {0, 0});
}

TEST(GradientTapeTest, TheTargetMayBeASource) {
  const Tensor x = row({2, 3});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = ops::square(x);
  const auto gradients = tape.input_gradient(y, {y, x});
  expect_floats(gradients[0].dense(), {2}, {1, 1});
  expect_floats(gradients[1].dense(), {2}, {4, 6});
}

TEST(GradientTapeTest, IntermediateResultsHaveGradients) {
  const Tensor x = row({2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = ops::square(x), z = y * y * x;
  const auto gradients = tape.input_gradient(z, {x, y});
  expect_floats(gradients[0].dense(), {1}, {80});  // x^5
  expect_floats(gradients[1].dense(), {1}, {16});
}

TEST(GradientTapeTest, DifferentiatesTwiceByNesting) {
  const Tensor x = row({2});
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.input_gradient(x * x * x, {x})[0].dense();
  }
  expect_floats(first, {1}, {12});
  expect_floats(outer.input_gradient(first, {x})[0].dense(), {1}, {12});
}

TEST(GradientTapeTest, DifferentiatesThreeTimesByNesting) {
  const Variable x = variable({2});
  GradientTape a, b, c;
  const Tensor y = ops::square(ops::square(x));
  const Tensor first = c.gradient(y, {x})[0].dense();
  const Tensor second = b.gradient(first, {x})[0].dense();
  const Tensor third = a.gradient(second, {x})[0].dense();
  expect_floats(first, {1}, {32});
  expect_floats(second, {1}, {48});
  expect_floats(third, {1}, {48});
}

TEST(GradientTapeTest, RecordsNothingWhilePaused) {
  const Variable w = variable({3});
  GradientTape tape;
  Tensor constant;
  {
    const auto pause = tape.stop_recording();
    constant = ops::square(w);
  }
  expect_floats(tape.gradient(constant * w.read(), {w})[0].dense(), {1}, {9});
}

TEST(GradientTapeTest, RecordsEachOpOnceAfterNestedPauses) {
  const Variable w = variable({3});
  GradientTape tape({.persistent = true});
  const Tensor y = ops::square(w);
  {
    const auto pause = tape.stop_recording();
    tape.gradient(y, {w});  // pauses as well
    const Tensor unseen = ops::square(y);
    EXPECT_FALSE(tape.gradient(unseen, {w})[0]);
  }
  expect_floats(tape.gradient(y * y, {w})[0].dense(), {1}, {108});
}

TEST(GradientTapeTest, PausesForAllTapesUnderNoGradient) {
  const Variable w = variable({3});
  GradientTape a, b;
  Tensor constant;
  {
    const NoGradient pause;
    EXPECT_FALSE(GradientTape::any_active());
    constant = ops::square(w);
  }
  EXPECT_TRUE(GradientTape::any_active());
  const Tensor y = constant * w.read();
  expect_floats(a.gradient(y, {w})[0].dense(), {1}, {9});
  expect_floats(b.gradient(y, {w})[0].dense(), {1}, {9});
}

TEST(GradientTapeTest, ResetForgetsTheRecording) {
  const Variable w = variable({3});
  GradientTape tape;
  const Tensor old = ops::square(w);
  tape.gradient(old, {w});
  tape.reset();
  const Tensor y = old * w.read();
  expect_floats(tape.gradient(y, {w})[0].dense(), {1}, {9});
}

TEST(GradientTapeTest, RecordsItsOwnThreadOnly) {
  GradientTape tape;
  bool active = true;
  std::jthread([&] { active = GradientTape::any_active(); }).join();
  EXPECT_FALSE(active);
  EXPECT_TRUE(GradientTape::any_active());
}

TEST(GradientTapeTest, StopGradientStopsGradients) {
  const Variable w = variable({3});
  GradientTape tape;
  const Tensor x = w;
  expect_floats(tape.gradient(x * ops::stop_gradient(x), {w})[0].dense(), {1}, {3});
}

TEST(GradientTapeTest, IntegersAndConditionsHaveNoGradient) {
  const Variable w = variable({3});
  GradientTape tape;
  const Tensor x = w;
  const Tensor rounded = ops::cast(ops::cast(x, DType::kInt64), DType::kFloat32);
  const Tensor y = rounded + ops::cast(ops::greater(x, rounded), DType::kFloat32);
  EXPECT_FALSE(tape.gradient(y, {w})[0]);
}

// ---- Slices.

Variable table() { return Variable(floats({1, 2, 3, 4, 5, 6}, {3, 2}), {.name = "table"}); }

TEST(SlicesTest, GatherHasASlicesGradient) {
  const Variable t = table();
  GradientTape tape;
  const Tensor y = ops::gather(t, ids({2, 0, 2})) * floats({1, 2, 3, 4, 5, 6}, {3, 2});
  const Gradient g = tape.gradient(y, {t})[0];
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().ids.to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 2}));
  expect_floats(g.slices().values, {3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(g.slices().dense_shape, Shape({3, 2}));
  expect_floats(g.dense(), {3, 2}, {3, 4, 0, 0, 6, 8});
}

TEST(SlicesTest, SlicesOfOneTableAreConcatenated) {
  const Variable t = table();
  GradientTape tape;
  const Tensor y = ops::gather(t, ids({1})) + ops::gather(t, ids({2}));
  const Gradient g = tape.gradient(y, {t})[0];
  ASSERT_TRUE(g.is_slices());
  EXPECT_EQ(g.slices().ids.size(), 2);
  expect_floats(g.dense(), {3, 2}, {0, 0, 1, 1, 1, 1});
}

TEST(SlicesTest, SlicesAndDenseGradientsAddUpDensely) {
  const Variable t = table();
  GradientTape tape;
  const Tensor y = ops::sum(ops::gather(t, ids({1}))) + ops::sum(ops::square(t));
  const Gradient g = tape.gradient(y, {t})[0];
  EXPECT_FALSE(g.is_slices());
  expect_floats(g.dense(), {3, 2}, {2, 4, 7, 9, 10, 12});
}

TEST(SlicesTest, SlicesOfIntermediateResultsPropagate) {
  const Variable t = table();
  GradientTape tape;
  const Tensor y = ops::gather(ops::square(t), ids({1}));
  expect_floats(tape.gradient(y, {t})[0].dense(), {3, 2}, {0, 0, 6, 8, 0, 0});
}

TEST(SlicesTest, SlicesDoNotKeepTheTableAlive) {
  const Variable t = table();
  GradientTape tape;
  const Tensor y = ops::embedding_pool(t, ids({0, 1}), ids({0, 2}), {}, ops::Combiner::kSum);
  const float* before = VariableStorage(t).elements<float>().data();
  VariableStorage(t).make_unique();
  EXPECT_EQ(VariableStorage(t).elements<float>().data(), before);
  EXPECT_TRUE(tape.gradient(y, {t})[0].is_slices());
}

TEST(GradientTest, AccessToAnotherKindIsAnError) {
  const Gradient none, dense(row({1}));
  EXPECT_FALSE(none);
  EXPECT_THROW(none.dense(), RuntimeError);
  EXPECT_THROW(none.slices(), RuntimeError);
  EXPECT_THROW(dense.slices(), RuntimeError);
}

TEST(GradientTest, AddsToEmptyGradients) {
  Gradient sum;
  sum.add({});
  EXPECT_FALSE(sum);
  sum.add(row({1, 2}));
  sum.add({});
  sum.add(row({10, 20}));
  expect_floats(sum.dense(), {2}, {11, 22});
}

// ---- Gradients that ops compute.

// Records which gradients vjp() was asked to compute.
class Probe final : public Op {
 public:
  explicit Probe(std::vector<bool>& wanted) : Op("Probe"), wanted_(wanted) {}
  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {in[0].aliased()};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    for (size_t i = 0; i < wanted_.size(); ++i) wanted_[i] = args.wants(i);
    return {args.output_gradients[0], args.output_gradients[0]};
  }

 private:
  std::vector<bool>& wanted_;
};

TEST(VjpArgsTest, OpsSeeWhichGradientsAreNeeded) {
  std::vector<bool> wanted(2);
  const Tensor a = row({1}), b = row({2});
  GradientTape tape;
  tape.watch(b);
  const Tensor y = dispatch1(Probe(wanted), {a, b});
  tape.input_gradient(y, {b});
  EXPECT_EQ(wanted, (std::vector<bool>{false, true}));
}

class WithoutGradient final : public Op {
 public:
  WithoutGradient() : Op("WithoutGradient") {}
  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {in[0].aliased()};
  }
};

TEST(VjpArgsTest, OpsWithoutAGradientRejectThem) {
  const Tensor x = row({1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = dispatch1(WithoutGradient(), {x});
  EXPECT_THROW(tape.input_gradient(y, {x}), NotImplementedError);
}

TEST(GradientTapeTest, ARejectedCallDoesNotConsumeTheTape) {
  const Tensor x = Tensor::from<float>({1, 2}, {2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = ops::square(x);
  EXPECT_THROW(tape.input_gradient(y, {x}, {.output_gradient = Tensor::scalar<float>(1)}),
               ValueError);
  EXPECT_EQ(tape.input_gradient(y, {x})[0].dense().to_vector<float>(), (std::vector<float>{2, 4}));
}

}  // namespace keel::tape_test
