// Options of all optimizers, in one replica.
// Tests optimizers/step/decay_exceptions.cc, gradient_clipping.cc, post_update.cc and
// variable_update.cc.
#include <keel/optimizers/optimizer_options.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::optimizer_options_test {

using optimizers::Adagrad;
using optimizers::Adam;
using optimizers::SGD;
using testing_support::expect_near;
using testing_support::floats;
using testing_support::slices;
using testing_support::Tolerance;
using testing_support::values_of;
using Floats = std::vector<float>;

constexpr Tolerance kTolerance = {.absolute = 1e-6, .relative = 1e-6};

Variable variable(const Floats& values, std::string name = "w") {
  return Variable(Tensor::from(values, {static_cast<int64_t>(values.size())}),
                  {.name = std::move(name)});
}

TEST(OptimizerOptionsTest, RejectsIncompatibleArguments) {
  EXPECT_THROW(SGD({.clipnorm = 1, .clipvalue = 1}), ValueError);
  EXPECT_THROW(SGD({.clipvalue = 1, .global_clipnorm = 1}), ValueError);
  EXPECT_THROW(Adam({.clipnorm = 0, .global_clipnorm = 0}), ValueError);
  EXPECT_THROW(SGD({.clipnorm = -1}), ValueError);
  EXPECT_THROW(SGD({.clipvalue = -1}), ValueError);
  EXPECT_THROW(SGD({.global_clipnorm = std::nan("")}), ValueError);
  EXPECT_THROW(SGD({.weight_decay = -0.1}), ValueError);
  EXPECT_THROW(SGD({.use_ema = true, .ema_momentum = 1.1}), ValueError);
  EXPECT_THROW(SGD({.use_ema = true, .ema_overwrite_frequency = 0}), ValueError);
  EXPECT_NO_THROW(SGD({.ema_momentum = 1.1, .ema_overwrite_frequency = 0}));
  EXPECT_THROW(SGD({.loss_scale_factor = 0}), ValueError);
  EXPECT_THROW(SGD({.gradient_accumulation_steps = 1}), ValueError);
}

// ---- Weight decay.

TEST(OptimizerOptionsTest, DecaysBeforeItUpdates) {
  const SGD sgd({.learning_rate = 0.5, .weight_decay = 0.25});
  const Variable w = variable({2, -4});
  sgd->apply_gradients({floats({1, 0})}, {w});
  EXPECT_EQ(values_of(w), (Floats{2 - 0.25F - 0.5F, -3.5}));
}

TEST(OptimizerOptionsTest, DecaysAllRowsOfASparseGradient) {
  const SGD sgd({.learning_rate = 0.5, .weight_decay = 0.25});
  const Variable w(Tensor::full<float>({3, 1}, 8), {.name = "w"});
  sgd->apply_gradients({slices({1, 1}, {1, 1}, {3, 1})}, {w});
  EXPECT_EQ(values_of(w), (Floats{7, 6, 7}));
}

TEST(OptimizerOptionsTest, DecaysOnlyVariablesThatAreUpdated) {
  const SGD sgd({.learning_rate = 0.5, .weight_decay = 0.25});
  const Variable w = variable({2}), other = variable({2}, "other");
  sgd->apply_gradients({floats({0}), {}}, {w, other});
  EXPECT_EQ(values_of(w), Floats{1.75});
  EXPECT_EQ(values_of(other), Floats{2});
}

TEST(OptimizerOptionsTest, ExcludesVariablesAndPatternsFromDecay) {
  const SGD sgd({.learning_rate = 0.5, .weight_decay = 0.25});
  const std::vector<Variable> all = {variable({2}, "kernel"), variable({2}, "bias"),
                                     variable({2}, "gamma"), variable({2}, "beta_1")};
  const auto step = [&] {
    for (const Variable& v : all) v.assign(floats({2}));
    sgd->apply_gradients({floats({0}), floats({0}), floats({0}), floats({0})}, all);
    Floats out;
    for (const Variable& v : all) out.push_back(values_of(v)[0]);
    return out;
  };
  EXPECT_FALSE(sgd->excludes_from_weight_decay());
  sgd->exclude_from_weight_decay({all[2]}, {"ia", "^beta"});
  EXPECT_TRUE(sgd->excludes_from_weight_decay());
  EXPECT_EQ(step(), (Floats{1.75, 2, 2, 2}));
  sgd->exclude_from_weight_decay({all[0]});
  EXPECT_EQ(step(), (Floats{2, 1.75, 1.75, 1.75}));
  EXPECT_THROW(sgd->exclude_from_weight_decay({}, {"("}), ValueError);
  EXPECT_EQ(step(), (Floats{2, 1.75, 1.75, 1.75}));
}

TEST(OptimizerOptionsTest, UpdatesOnlyNamedRowsWithoutDecay) {
  const Adagrad adagrad({.learning_rate = 0.5, .weight_decay = 0.25});
  adagrad->exclude_from_weight_decay({}, {"w"});
  const Variable w(Tensor::full<float>({3, 1}, 8), {.name = "w"});
  adagrad->apply_gradients({slices({1}, {1}, {3, 1})}, {w});
  EXPECT_EQ(values_of(w)[0], 8);
  EXPECT_LT(values_of(w)[1], 8);
}

// ---- Clipping.

TEST(OptimizerOptionsTest, ClipsNormsOfVariablesOneByOne) {
  const SGD sgd({.learning_rate = 1, .clipnorm = 2});
  const Variable a = variable({0, 0}, "a"), b = variable({0}, "b"), c = variable({0}, "c");
  sgd->apply_gradients({floats({6, 8}), floats({1.5}), floats({0})}, {a, b, c});
  expect_near(values_of(a), {-1.2F, -1.6F}, kTolerance);
  EXPECT_EQ(values_of(b), Floats{-1.5});
  EXPECT_EQ(values_of(c), Floats{0});
}

TEST(OptimizerOptionsTest, ClipsTheNormOfAllVariablesTogether) {
  const SGD sgd({.learning_rate = 1, .global_clipnorm = 6.5});
  const Variable a = variable({0, 0}, "a"), b = variable({0}, "b");
  const Variable d(Tensor::zeros({1}, DType::kFloat64), {.name = "d"});
  sgd->apply_gradients({floats({3, 4}), floats({12}), Tensor::zeros({1}, DType::kFloat64)},
                       {a, b, d});
  expect_near(values_of(a), {-1.5, -2}, kTolerance);
  expect_near(values_of(b), {-6}, kTolerance);
  sgd->apply_gradients({floats({3, 4}), {}, {}}, {a, b, d});
  expect_near(values_of(a), {-4.5, -6}, kTolerance);
}

TEST(OptimizerOptionsTest, ClipsElements) {
  const SGD sgd({.learning_rate = 1, .clipvalue = 0.5});
  const Variable w = variable({0, 0, 0});
  sgd->apply_gradients({floats({2, -2, 0.25})}, {w});
  EXPECT_EQ(values_of(w), (Floats{-0.5, 0.5, -0.25}));
}

TEST(OptimizerOptionsTest, ZeroClipsNothing) {
  for (const SGD& sgd :
       {SGD({.learning_rate = 1, .clipnorm = 0}), SGD({.learning_rate = 1, .clipvalue = 0}),
        SGD({.learning_rate = 1, .global_clipnorm = 0})}) {
    const Variable w = variable({0});
    sgd->apply_gradients({floats({100})}, {w});
    EXPECT_EQ(values_of(w), Floats{-100});
  }
}

TEST(OptimizerOptionsTest, ClippingPropagatesNaN) {
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {nan, infinity}) {
    const SGD global({.learning_rate = 1, .global_clipnorm = 1});
    const Variable a = variable({0}, "a"), b = variable({0}, "b");
    global->apply_gradients({floats({bad}), floats({1})}, {a, b});
    EXPECT_TRUE(std::isnan(values_of(b)[0]));
    const SGD each({.learning_rate = 1, .clipnorm = 1});
    const Variable c = variable({0, 0}, "c");
    each->apply_gradients({floats({bad, 1})}, {c});
    EXPECT_TRUE(std::isnan(values_of(c)[0]));
  }
}

class ClippedRowsTest : public testing::TestWithParam<SGDOptions> {};

TEST_P(ClippedRowsTest, AreSummedByIdAndThenClippedAsDenseGradients) {
  const Shape shape = {4, 2};
  const IndexedSlices rows = slices({2, 0, 2}, {0.5, -2, 1, 1, 0.75, 3}, shape);
  const SGD sparse(GetParam()), dense(GetParam());
  const Variable a(Tensor::zeros(shape), {.name = "a"}), b(Tensor::zeros(shape), {.name = "b"});
  const Variable other = variable({1}, "other"), another = variable({1}, "another");
  sparse->apply_gradients({rows, floats({5})}, {a, other});
  dense->apply_gradients({Gradient(rows).dense(), floats({5})}, {b, another});
  expect_near(values_of(a), values_of(b), kTolerance);
  expect_near(values_of(other), values_of(another), kTolerance);
  EXPECT_EQ(values_of(a)[2], 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ClippedRowsTest,
                         testing::Values(SGDOptions{.clipnorm = 1}, SGDOptions{.clipvalue = 1},
                                         SGDOptions{.global_clipnorm = 1},
                                         SGDOptions{.clipnorm = 1, .loss_scale_factor = 8},
                                         SGDOptions{.clipvalue = 0.1, .loss_scale_factor = 8}));

// ---- Averages.

TEST(OptimizerOptionsTest, AveragesVariablesFromTheFirstStepOn) {
  const SGD sgd({.learning_rate = 1, .use_ema = true, .ema_momentum = 0.75});
  const Variable w = variable({8}), still = variable({3}, "still");
  const auto average = [&](const Variable& v) { return values_of(sgd->slots(v).at(0)); };
  sgd->apply_gradients({floats({4}), {}}, {w, still});
  EXPECT_EQ(values_of(w), Floats{4});
  EXPECT_EQ(average(w), Floats{4});
  EXPECT_EQ(average(still), Floats{3});
  sgd->apply_gradients({floats({4}), {}}, {w, still});
  EXPECT_EQ(values_of(w), Floats{0});
  EXPECT_EQ(average(w), Floats{3});
  sgd->finalize_variable_values({w, still});
  EXPECT_EQ(values_of(w), Floats{3});
  EXPECT_EQ(values_of(still), Floats{3});
}

TEST(OptimizerOptionsTest, OverwritesVariablesByTheirAveragesPeriodically) {
  const SGD sgd(
      {.learning_rate = 1, .use_ema = true, .ema_momentum = 0.5, .ema_overwrite_frequency = 2});
  const Variable w = variable({8});
  sgd->apply_gradients({floats({4})}, {w});
  EXPECT_EQ(values_of(w), Floats{4});
  sgd->apply_gradients({floats({4})}, {w});
  EXPECT_EQ(values_of(w), Floats{2});
  sgd->apply_gradients({floats({1})}, {w});
  EXPECT_EQ(values_of(w), Floats{1});
  EXPECT_EQ(values_of(sgd->slots(w)[0]), Floats{1.5});
}

TEST(OptimizerOptionsTest, FinalizingDoesNothingWithoutAverages) {
  const Variable w = variable({8}), unknown = variable({7}, "unknown");
  SGD(SGDOptions{})->finalize_variable_values({w});
  const SGD sgd({.use_ema = true});
  sgd->build({w});
  sgd->finalize_variable_values({w, unknown});
  sgd->apply_gradients({floats({0})}, {w});
  sgd->finalize_variable_values({w, unknown});
  EXPECT_EQ(values_of(w), Floats{8});
  EXPECT_EQ(values_of(unknown), Floats{7});
}

// ---- Accumulation.

TEST(OptimizerOptionsTest, UpdatesByTheMeanOfAccumulatedGradients) {
  const SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 3});
  const Variable w = variable({0, 0});
  for (const float g : {3.0F, 6.0F}) {
    sgd->apply_gradients({floats({g, -g})}, {w});
    EXPECT_EQ(values_of(w), (Floats{0, 0}));
    EXPECT_EQ(sgd->iterations(), 0);
  }
  EXPECT_EQ(sgd->slots(w).at(0).name(), "gradient_accumulator");
  EXPECT_EQ(values_of(sgd->slots(w)[0]), (Floats{9, -9}));
  sgd->apply_gradients({floats({0, 0})}, {w});
  EXPECT_EQ(values_of(w), (Floats{-3, 3}));
  EXPECT_EQ(values_of(sgd->slots(w)[0]), (Floats{0, 0}));
  EXPECT_EQ(sgd->iterations(), 1);
  EXPECT_EQ(sgd->iterations_variable().read().item<int64_t>(), 3);
}

TEST(OptimizerOptionsTest, AccumulatesRows) {
  const SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 2});
  const Variable w(Tensor::zeros({3, 1}), {.name = "w"});
  sgd->apply_gradients({slices({2, 2}, {1, 1}, {3, 1})}, {w});
  sgd->apply_gradients({slices({0}, {4}, {3, 1})}, {w});
  EXPECT_EQ(values_of(w), (Floats{-2, 0, -1}));
}

TEST(OptimizerOptionsTest, ClipsAccumulatedGradients) {
  const SGD sgd({.learning_rate = 1, .clipnorm = 1, .gradient_accumulation_steps = 2});
  const Variable w = variable({0, 0});
  sgd->apply_gradients({floats({12, 0})}, {w});
  sgd->apply_gradients({floats({0, -16})}, {w});
  expect_near(values_of(w), {-0.6F, 0.8F}, kTolerance);
}

TEST(OptimizerOptionsTest, SchedulesCountCallsButRulesCountUpdates) {
  const LearningRate rate = optimizers::schedules::PiecewiseConstantDecay(
      {.boundaries = {0, 2}, .values = {100, 1, 0.5}});
  const SGD sgd({.learning_rate = rate, .gradient_accumulation_steps = 2});
  const Variable w = variable({0});
  for (int i = 0; i < 4; ++i) sgd->apply_gradients({floats({1})}, {w});
  EXPECT_EQ(values_of(w), Floats{-1.5});

  // The length of Adam's first step is the learning rate, whatever was accumulated before.
  const Adam adam({.learning_rate = 0.25, .gradient_accumulation_steps = 2});
  const Variable v = variable({0});
  for (int i = 0; i < 2; ++i) adam->apply_gradients({floats({3})}, {v});
  expect_near(values_of(v), {-0.25}, kTolerance);
}

TEST(OptimizerOptionsTest, EvaluatesTheRateForUpdatesOnly) {
  int asked = 0;
  const SGD sgd({.learning_rate = [&] { return ++asked; }, .gradient_accumulation_steps = 2});
  const Variable w = variable({0});
  for (int i = 0; i < 4; ++i) sgd->apply_gradients({floats({1})}, {w});
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(values_of(w), Floats{-3});
}

// ---- Loss scale.

TEST(OptimizerOptionsTest, GradientsOfTheScaledLossAreUnscaled) {
  const SGD sgd({.learning_rate = 1, .clipvalue = 1, .loss_scale_factor = 1024});
  const Variable w = variable({1, -3});
  Gradient g;
  {
    GradientTape tape;
    const Tensor loss = ops::sum(ops::multiply(w.read(), w.read()));
    g = tape.gradient(sgd->scale_loss(loss), {w})[0];
  }
  EXPECT_EQ(g.dense().to_vector<float>(), (Floats{2048, -6144}));
  sgd->apply_gradients({g}, {w});
  EXPECT_EQ(values_of(w), (Floats{0, -2}));
}

TEST(OptimizerOptionsTest, ScalingIsTheIdentityByDefault) {
  const Tensor loss = Tensor::scalar<float>(3);
  EXPECT_EQ(SGD(SGDOptions{})->scale_loss(loss).item<float>(), 3);
}

TEST(OptimizerOptionsTest, RejectsScaledLossesOfVirtualVariables) {
  const Variable stand_in = Variable::virtual_trainable("tables");
  const SGD sgd({.loss_scale_factor = 2});
  EXPECT_THROW(sgd->apply_gradients({Tensor::zeros({1})}, {stand_in}), NotImplementedError);
  EXPECT_EQ(sgd->iterations(), 0);
}

// ---- Constraints.

Variable constrained(const Floats& values, std::function<Tensor(const Tensor&)> constraint) {
  return Variable(Tensor::from(values, {std::ssize(values)}),
                  {.name = "w", .constraint = std::move(constraint)});
}

TEST(OptimizerOptionsTest, AppliesConstraintsAfterEachStep) {
  const SGD sgd({.learning_rate = 1});
  const Variable w = constrained({1, 1}, [](const Tensor& x) { return ops::relu(x); });
  sgd->apply_gradients({floats({2, 0.5})}, {w});
  EXPECT_EQ(values_of(w), (Floats{0, 0.5}));
}

TEST(OptimizerOptionsTest, AppliesConstraintsToWholeTables) {
  const SGD sgd({.learning_rate = 1});
  const Variable w(Tensor::full<float>({3, 1}, -1),
                   {.name = "w", .constraint = [](const Tensor& x) { return ops::relu(x); }});
  sgd->apply_gradients({slices({1}, {-3}, {3, 1})}, {w});
  EXPECT_EQ(values_of(w), (Floats{0, 2, 0}));
}

TEST(OptimizerOptionsTest, AveragesValuesBeforeConstraints) {
  const SGD sgd({.learning_rate = 1, .use_ema = true});
  const Variable w = constrained({1}, [](const Tensor& x) { return ops::relu(x); });
  sgd->apply_gradients({floats({3})}, {w});
  EXPECT_EQ(values_of(w), Floats{0});
  EXPECT_EQ(values_of(sgd->slots(w)[0]), Floats{-2});
}

TEST(OptimizerOptionsTest, AConstraintMayReturnItsArgument) {
  const SGD sgd({.learning_rate = 1});
  Tensor kept;
  const Variable w = constrained({1}, [&](const Tensor& x) { return kept = x; });
  sgd->apply_gradients({floats({1})}, {w});
  sgd->apply_gradients({floats({1})}, {w});
  EXPECT_EQ(values_of(w), Floats{-1});
}

TEST(OptimizerOptionsTest, RejectsConstraintsThatChangeShapes) {
  const SGD sgd(SGDOptions{});
  const Variable w = constrained({1, 2}, [](const Tensor&) { return Tensor::zeros({3}); });
  EXPECT_THROW(sgd->apply_gradients({floats({1, 1})}, {w}), ValueError);
}

TEST(OptimizerOptionsTest, LeavesVariablesWithoutGradientAndTheirConstraintsAlone) {
  const SGD sgd(SGDOptions{});
  const Variable w = variable({1});
  const Variable still = constrained({-1}, [](const Tensor& x) { return ops::relu(x); });
  sgd->apply_gradients({floats({1}), {}}, {w, still});
  EXPECT_EQ(values_of(still), Floats{-1});
}

// ---- All together.

const AdamOptions kEverything = {.learning_rate = 0.1,
                                 .amsgrad = true,
                                 .weight_decay = 0.1,
                                 .clipnorm = 0.5,
                                 .use_ema = true,
                                 .ema_momentum = 0.9,
                                 .ema_overwrite_frequency = 2,
                                 .loss_scale_factor = 4,
                                 .gradient_accumulation_steps = 2};

TEST(OptimizerOptionsTest, TrainsFloat64AsFloat32) {
  const Adam single(kEverything), twice(kEverything);
  const Variable a = variable({1, -2, 3}), b(a.read().cast(DType::kFloat64), {.name = "b"});
  for (int step = 0; step < 9; ++step) {
    const float x = std::sin(static_cast<float>(step));
    const Tensor g = floats({x, 4 * x * x, -8});
    single->apply_gradients({g}, {a});
    twice->apply_gradients({g.cast(DType::kFloat64)}, {b});
  }
  expect_near(b.read().cast(DType::kFloat32).to_vector<float>(), values_of(a), kTolerance);
}

TEST(OptimizerOptionsTest, DoesNotChangeValuesReadBefore) {
  const Adam adam(kEverything);
  const Variable w = variable({1, 2});
  adam->apply_gradients({floats({1, 1})}, {w});
  std::vector<Tensor> read = {w.read()};
  for (const Variable& slot : adam->slots(w)) read.push_back(slot.read());
  std::vector<Tensor> copies;
  for (const Tensor& t : read) copies.push_back(t.clone());
  adam->apply_gradients({floats({1, 1})}, {w});
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].to_vector<float>(), copies[i].to_vector<float>()) << i;
  }
}

std::vector<std::string> paths(const std::vector<Variable>& variables) {
  std::vector<std::string> out;
  for (const Variable& v : variables) out.push_back(v.path());
  return out;
}

TEST(OptimizerOptionsTest, ListsItsStateInTheOrderOfKerasFiles) {
  const Variable a = variable({1}, "a"), b = variable({1, 2}, "b");
  const std::vector<Variable> both = {a, Variable::virtual_trainable("tables"), b};
  EXPECT_EQ(paths(Adam(kEverything)->variables(both)),
            (std::vector<std::string>{"adam/iteration", "a/average", "b/average",
                                      "a/gradient_accumulator", "b/gradient_accumulator",
                                      "a/momentum", "a/velocity", "b/momentum", "b/velocity",
                                      "a/velocity_hat", "b/velocity_hat"}));
  EXPECT_EQ(
      paths(optimizers::RMSprop({.momentum = 0.5, .centered = true})->variables(both)),
      (std::vector<std::string>{"rm_sprop/iteration", "a/velocity", "b/velocity", "a/momentum",
                                "b/momentum", "a/average_gradient", "b/average_gradient"}));
  EXPECT_EQ(paths(SGD(SGDOptions{})->variables(both)), std::vector<std::string>{"sgd/iteration"});
}

TEST(OptimizerOptionsTest, RejectsALearningRateThatIsNegativeInfiniteOrNaN) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double bad : {-0.1, kInfinity, -kInfinity, std::nan("")}) {
    EXPECT_THROW(SGD({.learning_rate = bad}), ValueError) << bad;
    EXPECT_THROW(Adam({.learning_rate = bad}), ValueError) << bad;
    const SGD sgd({.learning_rate = 0.5});
    EXPECT_THROW(sgd->set_learning_rate(bad), ValueError) << bad;
    EXPECT_EQ(sgd->learning_rate(), 0.5);
    // Rates from a function or a schedule are checked before anything changes.
    const Variable w = variable({1, 2});
    const SGD called({.learning_rate = [bad] { return bad; }});
    EXPECT_THROW(called->apply_gradients({floats({1, 1})}, {w}), ValueError) << bad;
    const SGD scheduled({.learning_rate = optimizers::schedules::PiecewiseConstantDecay(
                             {.boundaries = {1}, .values = {0.5, bad}})});
    scheduled->apply_gradients({floats({0, 0})}, {w});
    scheduled->apply_gradients({floats({0, 0})}, {w});
    EXPECT_THROW(scheduled->apply_gradients({floats({1, 1})}, {w}), ValueError) << bad;
    EXPECT_EQ(values_of(w), (Floats{1, 2}));
    EXPECT_EQ(called->iterations(), 0);
    EXPECT_EQ(scheduled->iterations(), 2);
  }
  EXPECT_EQ(SGD({.learning_rate = 0})->learning_rate(), 0);
}

TEST(OptimizerOptionsTest, SlotsOfTheRuleComeFirst) {
  const Adam adam(kEverything);
  std::vector<std::string> names;
  for (const Slot& slot : adam->slot_specs()) names.push_back(slot.name);
  EXPECT_EQ(names, (std::vector<std::string>{"momentum", "velocity", "velocity_hat", "average",
                                             "gradient_accumulator"}));
}

}  // namespace keel::optimizer_options_test
