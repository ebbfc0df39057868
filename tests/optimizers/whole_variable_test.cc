#include <keel/optimizers/whole_variable.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/optimizers/golden.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"

namespace keel::whole_variable_test {

using optimizers::Adafactor;
using optimizers::Muon;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::common_config;
using testing_support::expect_config_round_trip;
using testing_support::expect_same_bits;
using testing_support::message_of;
using testing_support::slot_names;

TEST(WholeVariableOptimizersTest, HaveTheSlotsOfTheirRules) {
  EXPECT_THAT(slot_names(Adafactor(AdafactorOptions{})), ElementsAre("row", "column", "velocity"));
  EXPECT_THAT(slot_names(Muon(MuonOptions{})), ElementsAre("momentum", "velocity"));
}

TEST(WholeVariableOptimizersTest, WriteKerasKeys) {
  EXPECT_EQ(to_json(Adafactor(AdafactorOptions{})->get_config()),
            common_config("adafactor", "0.001") +
                R"("beta_2_decay": -0.8, "epsilon_1": 1e-30, "epsilon_2": 0.001, )"
                R"("clip_threshold": 1.0, "relative_step": true})");
  expect_config_round_trip(Adafactor({.learning_rate = 0.3, .clip_threshold = 2}));
  expect_config_round_trip(
      Muon({.weight_decay = {}, .exclude_layers = {"a", "b"}, .rms_rate = {}}));
}

TEST(WholeVariableOptimizersTest, RejectParametersOutOfRange) {
  EXPECT_THROW(Adafactor({.beta_2_decay = 0}), ValueError);
  EXPECT_THROW(Adafactor({.epsilon_1 = -1}), ValueError);
  EXPECT_THROW(Adafactor({.clip_threshold = 0}), ValueError);
  EXPECT_THROW(Muon({.momentum = 1}), ValueError);
  EXPECT_THROW(Muon({.ns_steps = -1}), ValueError);
  EXPECT_THROW(Muon({.exclude_layers = {"["}}), ValueError);
}

TEST(WholeVariableOptimizersTest, LazyRowsAreRejectedWithAReason) {
  for (const LazyRows rows : {LazyRows::kReplay, LazyRows::kClosedForm}) {
    EXPECT_THAT(message_of<ValueError>([&] { Adafactor({.lazy_rows = rows}); }),
                HasSubstr("requires a whole variable"));
    EXPECT_THAT(message_of<ValueError>([&] { Muon({.lazy_rows = rows}); }),
                HasSubstr("requires a whole variable"));
  }
}

TEST(WholeVariableOptimizersTest, SlotsHaveTheShapesOfKeras) {
  const Adafactor adafactor(AdafactorOptions{});
  const Muon muon(MuonOptions{});
  const std::vector<Variable> variables = {Variable(Tensor::zeros({4, 3}), {.name = "kernel"}),
                                           Variable(Tensor::zeros({3}), {.name = "bias"}),
                                           Variable(Tensor::zeros({2, 4, 3}), {.name = "cube"})};
  std::vector<Shape> shapes;
  for (const Variable& v : adafactor->variables(variables)) shapes.push_back(v.shape());
  EXPECT_THAT(shapes, ElementsAre(Shape(), Shape({4}), Shape({3}), Shape({4, 3}), Shape(), Shape(),
                                  Shape({3}), Shape({2, 4}), Shape({2, 3}), Shape({2, 4, 3})));
  shapes.clear();
  // A matrix has no second moments.
  for (const Variable& v : muon->variables(variables)) shapes.push_back(v.shape());
  EXPECT_THAT(shapes, ElementsAre(Shape(), Shape({4, 3}), Shape({3}), Shape({3}), Shape({2, 4, 3}),
                                  Shape({2, 4, 3})));
}

std::vector<OptimizerHandle> kinds() {
  return {Adafactor({.learning_rate = 0.05, .clipnorm = 0.5}), Muon({.learning_rate = 0.05})};
}

TEST(WholeVariableOptimizersTest, SparseGradientsUpdateAllRows) {
  const IndexedSlices rows = {.ids = Tensor::from<int64_t>({2, 0, 2}, {3}),
                              .values = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}),
                              .dense_shape = {4, 2}};
  for (size_t k = 0; k < kinds().size(); ++k) {
    const OptimizerHandle sparse = kinds()[k], dense = kinds()[k];
    const Variable a(Tensor::full<float>({4, 2}, 1), {.name = "a"}),
        b(Tensor::full<float>({4, 2}, 1), {.name = "b"});
    for (int step = 0; step < 3; ++step) {
      sparse->apply_gradients({rows}, {a});
      dense->apply_gradients({Gradient(rows).dense()}, {b});
    }
    expect_same_bits(a.read(), b.read());
  }
}

TEST(WholeVariableOptimizersTest, AverageAndAccumulateLikeOthers) {
  const Adafactor optimizer({.learning_rate = 0.1,
                             .use_ema = true,
                             .ema_momentum = 0.5,
                             .gradient_accumulation_steps = 2});
  const Variable w(Tensor::full<float>({2}, 1), {.name = "w"});
  const Tensor g = Tensor::from<float>({1, 1}, {2});
  optimizer->apply_gradients({g}, {w});
  EXPECT_EQ(w.read().to_vector<float>(), (std::vector<float>{1, 1}));
  optimizer->apply_gradients({g}, {w});
  EXPECT_NEAR(w.read().data<float>()[0], 0.9, 1e-6);
  for (int i = 0; i < 2; ++i) optimizer->apply_gradients({g}, {w});
  const float last = w.read().data<float>()[0];
  optimizer->finalize_variable_values({w});
  EXPECT_NEAR(w.read().data<float>()[0], (0.9 + last) / 2, 1e-6);
}

TEST(WholeVariableOptimizersTest, WeightDecayOfMuonDependsOnTheVariable) {
  const Muon optimizer({.learning_rate = 0.5,
                        .adam_weight_decay = 0.25,
                        .weight_decay = 0.5,
                        .exclude_layers = {"excluded"}});
  const Variable matrix(Tensor::full<float>({2, 2}, 1), {.name = "kernel"});
  const Variable excluded(Tensor::full<float>({2, 2}, 1), {.name = "excluded"});
  const Variable kept(Tensor::full<float>({2}, 1), {.name = "kept"});
  optimizer->exclude_from_weight_decay({kept});
  optimizer->apply_gradients({Tensor::zeros({2, 2}), Tensor::zeros({2, 2}), Tensor::zeros({2})},
                             {matrix, excluded, kept});
  EXPECT_FLOAT_EQ(matrix.read().data<float>()[0], 0.75F);
  EXPECT_FLOAT_EQ(excluded.read().data<float>()[0], 0.875F);
  EXPECT_EQ(kept.read().data<float>()[0], 1);
}

TEST(WholeVariableOptimizersTest, TrainFloat64) {
  for (const OptimizerHandle& optimizer : kinds()) {
    const Variable w(Tensor::full<double>({2, 2}, 1), {.name = "w"});
    optimizer->apply_gradients({Tensor::from<double>({1, 2, 3, 5}, {2, 2})}, {w});
    for (const double x : w.read().to_vector<double>()) EXPECT_NE(x, 1);
  }
}

}  // namespace keel::whole_variable_test
