#include <keel/autodiff/control_flow.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

namespace keel::control_flow_test {

TEST(ControlFlowTest, CondRunsOneOfTwoFunctions) {
  const auto pick = [](const auto& pred) {
    return ops::cond(pred, [] { return 1; }, [] { return 2; });
  };
  EXPECT_EQ(pick(true), 1);
  EXPECT_EQ(pick(false), 2);
  EXPECT_EQ(pick(Tensor::scalar(0.5F)), 1);
  EXPECT_EQ(pick(Tensor::full<int64_t>({1, 1}, 0)), 2);
}

TEST(ControlFlowTest, AConditionHasOneElement) {
  EXPECT_THROW(ops::truth(Tensor::zeros({2})), ValueError);
  EXPECT_THROW(ops::truth(Tensor::full<std::string>({}, "yes")), TypeError);
}

TEST(ControlFlowTest, WhileLoopRunsUntilTheConditionFailsOrTheMostIsReached) {
  const auto count = [](int64_t most) {
    return ops::while_loop([](int i) { return i < 5; }, [](int i) { return i + 1; }, 0, most);
  };
  EXPECT_EQ(count(100), 5);
  EXPECT_EQ(count(3), 3);
  EXPECT_EQ(count(0), 0);
}

TEST(ControlFlowTest, TapesRecordTheOpsInside) {
  const Tensor x = Tensor::full<float>({}, 3);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = ops::while_loop([](const Tensor& v) { return v.item<float>() < 20; },
                                   [](const Tensor& v) { return ops::scale(v, 2.0); }, x);
  EXPECT_EQ(y.item<float>(), 24);
  EXPECT_EQ(tape.input_gradient(y, {x})[0].dense().item<float>(), 8);
}

TEST(ControlFlowTest, FunctionsSeeThatTheyRunInsideControlFlow) {
  EXPECT_FALSE(ControlFlowScope::active());
  const bool inside = ops::cond(true, ControlFlowScope::active, ControlFlowScope::active);
  EXPECT_TRUE(inside);
  EXPECT_TRUE(ops::while_loop([](bool seen) { return !seen; },
                              [](bool) { return ControlFlowScope::active(); }, false));
  EXPECT_FALSE(ControlFlowScope::active());
  EXPECT_THROW(
      ops::cond(true, []() -> int { throw ValueError("no"); }, [] { return 0; }), ValueError);
  EXPECT_FALSE(ControlFlowScope::active());
}

}  // namespace keel::control_flow_test
