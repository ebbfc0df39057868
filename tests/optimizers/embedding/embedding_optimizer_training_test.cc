// The tables that each embedding optimizer trains in an engine of one core.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/variable.h>
#include <keel/distribute/embedding/engine.h>
#include <keel/distribute/embedding/row_update.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>
#include <keel/optimizers/embedding/sparse_core_optimizers.h>
#include <keel/optimizers/embedding/tpu_parameters.h>

#include "tests/support/expectations.h"

namespace keel::table_optimizer_training_test {

using testing_support::expect_near;
using testing_support::Tolerance;

constexpr Tolerance kTolerance = {.absolute = 2e-6, .relative = 2e-5};

using Values = std::vector<float>;

// A row that a batch looked up, and the gradient of its activation; an empty gradient is zero.
struct Hit {
  int64_t row = 0;
  Values gradient = {};
};
using Batch = std::vector<Hit>;

class TrainedTable {
 public:
  explicit TrainedTable(EmbeddingOptimizer optimizer,
                        const std::vector<Values>& start = {{1, -0.5}, {2, 3}})
      : optimizer_(std::move(optimizer)),
        shape_({std::ssize(start), std::ssize(start[0])}),
        strategy_(std::make_unique<distribute::TPUStrategy>(
            distribute::TPUStrategyOptions{.num_cores = 1})),
        engine_(std::make_unique<distribute::EmbeddingEngine>(configuration(*optimizer_, shape_))) {
    Values flat;
    for (const Values& row : start) flat.insert(flat.end(), row.begin(), row.end());
    engine_->load(0, 0, Tensor::from(flat, shape_));
    const SlotVariables slots = create_slots(*optimizer_, {.name = "table", .shape = shape_});
    int part = 1;
    for (const Slot& slot : optimizer_->rule->slots()) {
      parts_[slot.name] = part;
      engine_->load(0, part++, std::get<Initializer>(slots.at(slot.name))(shape_));
    }
  }

  // Each hit is a separate sample. The learning rate is the optimizer's unless one is given.
  void step(const Batch& batch, std::optional<double> rate = {}) {
    std::vector<int64_t> ids, splits = {0};
    Values gradients;
    bool any = false;
    for (const Hit& hit : batch) {
      ids.push_back(hit.row);
      splits.push_back(std::ssize(ids));
      any = any || !hit.gradient.empty();
      gradients.insert(gradients.end(), hit.gradient.begin(), hit.gradient.end());
    }
    const auto n = std::ssize(ids);
    const distribute::TableStep step = {
        .learning_rate = rate ? *rate : optimizer_.current_learning_rate(),
        .hyperparameters = optimizer_.current_hyperparameters()};
    strategy_->run([&] {
      auto& communicator = strategy_->communicator();
      const auto found =
          engine_->lookup(communicator, {{.ids = Tensor::from(ids, {n}),
                                          .row_splits = Tensor::from(splits, {n + 1}),
                                          .weights = {}}});
      const Tensor dy = any ? Tensor::from(gradients, {n, shape_[1]}) : Tensor();
      engine_->apply(communicator, found.ticket, {dy}, {step});
    });
  }

  Values row(int64_t i = 0) const { return read(0, i); }
  Values slot(const std::string& name, int64_t row = 0) const { return read(parts_.at(name), row); }

 private:
  static distribute::EngineConfiguration configuration(const TableOptimizerState& optimizer,
                                                       const Shape& shape) {
    distribute::EngineConfiguration out;
    out.tables.push_back({.name = "table",
                          .rows = shape[0],
                          .dim = shape[1],
                          .combiner = distribute::Combiner::kSum,
                          .update = row_update(optimizer)});
    out.features.push_back({.table_id = 0});
    return out;
  }
  Values read(int part, int64_t row) const {
    Values out(shape_[1]);
    engine_->read_rows(0, part, row, row + 1, out.data());
    return out;
  }

  EmbeddingOptimizer optimizer_;
  Shape shape_;
  std::unique_ptr<distribute::TPUStrategy> strategy_;
  std::unique_ptr<distribute::EmbeddingEngine> engine_;
  std::map<std::string, int> parts_;
};

const Values kFirst = {0.4F, -0.2F};
const Values kSecond = {0.2F, 0.6F};
const Values kStart = {1, -0.5};
const Values kOther = {2, 3};

// Returns a table after one batch for each list of hits.
TrainedTable trained(const EmbeddingOptimizer& optimizer, const std::vector<Batch>& batches) {
  TrainedTable table(optimizer);
  for (const Batch& batch : batches) table.step(batch);
  return table;
}
const std::vector<Batch> kOneStep = {{{0, kFirst}}};
const std::vector<Batch> kTwoSteps = {{{0, kFirst}}, {{0, kSecond}}};
const std::vector<Batch> kTwiceInOneBatch = {{{0, kFirst}, {0, kSecond}}};

TEST(SpecRowsD, D01_SgdStepsTheRowsOfTheBatchOnly) {
  const TrainedTable t = trained(tpu::SGD{.learning_rate = 0.1}, kOneStep);
  expect_near(t.row(0), {0.96, -0.48}, kTolerance);
  EXPECT_EQ(t.row(1), kOther);
}

TEST(SpecRowsD, D02_SgdIsTheSameWithAndWithoutAccumulation) {
  for (const bool accumulate : {true, false}) {
    const tpu::SGD sgd = {.learning_rate = 0.1, .use_gradient_accumulation = accumulate};
    expect_near(trained(sgd, kTwiceInOneBatch).row(), {0.94, -0.54}, kTolerance);
  }
}

TEST(SpecRowsD, D03_GradientsAreClippedAfterTheyAreSummed) {
  const tpu::SGD sgd = {.learning_rate = 0.1, .clipvalue = 0.3};
  expect_near(trained(sgd, kTwiceInOneBatch).row(), {0.97, -0.53}, kTolerance);
}

TEST(SpecRowsD, D04_GradientsAreClippedOnOneSide) {
  const tpu::SGD sgd = {.learning_rate = 0.1, .clipvalue = {std::nullopt, 0.3}};
  expect_near(trained(sgd, kOneStep).row(), {0.97, -0.48}, kTolerance);
}

TEST(SpecRowsD, D05_WeightsOfSteppedRowsAreClipped) {
  const TrainedTable t = trained(
      tpu::SGD{.learning_rate = 1.0, .clip_weight_min = -0.4, .clip_weight_max = 0.5}, kOneStep);
  expect_near(t.row(0), {0.5, -0.3}, kTolerance);
  EXPECT_EQ(t.row(1), kOther);
}

TEST(SpecRowsD, D06_WeightsOfSteppedRowsDecayBeforeTheStep) {
  const TrainedTable t =
      trained(tpu::SGD{.learning_rate = 0.1, .weight_decay_factor = 0.2}, kOneStep);
  expect_near(t.row(0), {0.76, -0.38}, kTolerance);
  EXPECT_EQ(t.row(1), kOther);
}

TEST(SpecRowsD, D07_DecayIsMultipliedByTheRateOnRequest) {
  const tpu::SGD sgd = {.learning_rate = 0.1,
                        .weight_decay_factor = 0.2,
                        .multiply_weight_decay_factor_by_learning_rate = true};
  expect_near(trained(sgd, kOneStep).row(), {0.94, -0.47}, kTolerance);
}

TEST(SpecRowsD, D08_AdagradUsesTheNewAccumulatorWithoutEpsilon) {
  const tpu::Adagrad adagrad = {.learning_rate = 0.1};
  const TrainedTable one = trained(adagrad, kOneStep);
  expect_near(one.row(), {0.9215535, -0.4465478}, kTolerance);
  expect_near(one.slot("accumulators"), {0.26, 0.14}, kTolerance);
  const TrainedTable two = trained(adagrad, kTwoSteps);
  expect_near(two.row(), {0.8850387, -0.5314006}, kTolerance);
  expect_near(two.slot("accumulators"), {0.3, 0.5}, kTolerance);
}

TEST(SpecRowsD, D09_AdagradSumsDuplicatesOfOneBatchFirst) {
  tpu::Adagrad adagrad = {.learning_rate = 0.1};
  const TrainedTable on = trained(adagrad, kTwiceInOneBatch);
  expect_near(on.row(), {0.9115348, -0.5784465}, kTolerance);
  expect_near(on.slot("accumulators"), {0.46, 0.26}, kTolerance);
  adagrad.use_gradient_accumulation = false;
  const TrainedTable off = trained(adagrad, kTwiceInOneBatch);
  expect_near(off.row(), {0.8850387, -0.5314006}, kTolerance);
  expect_near(off.slot("accumulators"), {0.3, 0.5}, kTolerance);
}

TEST(SpecRowsD, D10_AZeroGradientChangesNothingInAdagrad) {
  const TrainedTable t = trained(tpu::Adagrad{.learning_rate = 0.1}, {{{0, {0, 0}}}});
  EXPECT_EQ(t.row(), kStart);
  EXPECT_EQ(t.slot("accumulators"), (Values{0.1F, 0.1F}));
}

TEST(SpecRowsD, D11_AdagradMomentum) {
  const tpu::AdagradMomentum o = {.learning_rate = 0.1, .momentum = 0.9};
  const TrainedTable one = trained(o, kOneStep);
  expect_near(one.row(), {0.9, -0.4}, kTolerance);
  expect_near(one.slot("accumulators"), {0.16, 0.04}, kTolerance);
  expect_near(one.slot("momenta"), {1, -1}, kTolerance);
  const TrainedTable two = trained(o, kTwoSteps);
  expect_near(two.row(), {0.7652786, -0.4048683}, kTolerance);
  expect_near(two.slot("accumulators"), {0.2, 0.4}, kTolerance);
  expect_near(two.slot("momenta"), {1.3472136, 0.0486833}, kTolerance);
}

TEST(SpecRowsD, D12_AdagradMomentumWithNesterovExponentAndDecayOfAccumulators) {
  const TrainedTable t = trained(tpu::AdagradMomentum{.learning_rate = 0.1,
                                                      .momentum = 0.9,
                                                      .use_nesterov = true,
                                                      .exponent = 3,
                                                      .beta2 = 0.9,
                                                      .epsilon = 0.1},
                                 kTwoSteps);
  expect_near(t.row(), {0.7003455, -0.6045035}, kTolerance);
  expect_near(t.slot("accumulators"), {0.0184, 0.0396}, kTolerance);
  expect_near(t.slot("momenta"), {1.1454573, 0.7738553}, kTolerance);
}

TEST(SpecRowsD, D13_MomentumMovesALookedUpRowOfZeroGradient) {
  const TrainedTable t = trained(tpu::AdagradMomentum{.learning_rate = 0.1, .momentum = 0.9},
                                 {{{0, kFirst}}, {{0, {0, 0}}}});
  expect_near(t.row(), {0.81, -0.31}, kTolerance);
  expect_near(t.slot("momenta"), {0.9, -0.9}, kTolerance);
}

TEST(SpecRowsD, D14_FtrlByDefault) {
  const tpu::FTRL ftrl = {.learning_rate = 0.1};
  const TrainedTable one = trained(ftrl, kOneStep);
  expect_near(one.row(), {0.3013799, -0.0239706}, kTolerance);
  expect_near(one.slot("accumulators"), {0.26, 0.14}, kTolerance);
  expect_near(one.slot("linears"), {-1.5367419, 0.0896899}, kTolerance);
  const TrainedTable two = trained(ftrl, kTwoSteps);
  expect_near(two.row(), {0.264865, -0.1088234}, kTolerance);
  expect_near(two.slot("accumulators"), {0.3, 0.5}, kTolerance);
  expect_near(two.slot("linears"), {-1.4507255, 0.7694979}, kTolerance);
}

TEST(SpecRowsD, D15_L1OfFtrlZeroesSmallWeights) {
  const TrainedTable t =
      trained(tpu::FTRL{.learning_rate = 0.1, .l1_regularization_strength = 2.0}, kOneStep);
  EXPECT_EQ(t.row(), (Values{0, 0}));
  expect_near(t.slot("linears"), {-1.5367419, 0.0896899}, kTolerance);
}

TEST(SpecRowsD, D16_FtrlWithL1L2AndBeta) {
  const tpu::FTRL ftrl = {.learning_rate = 0.1,
                          .l1_regularization_strength = 0.5,
                          .l2_regularization_strength = 0.3,
                          .beta = 0.2};
  expect_near(trained(ftrl, kOneStep).row(), {0.1346589, 0}, kTolerance);
}

TEST(SpecRowsD, D17_TheLinearSlotTimesTheRateGivesTheSameWeights) {
  tpu::FTRL ftrl = {.learning_rate = 0.1,
                    .l1_regularization_strength = 0.05,
                    .l2_regularization_strength = 0.3,
                    .beta = 0.2};
  const TrainedTable off = trained(ftrl, kTwoSteps);
  expect_near(off.row(), {0.168347, -0.0682993}, kTolerance);
  expect_near(off.slot("linears"), {-1.4097764, 0.7105273}, kTolerance);
  ftrl.multiply_linear_by_learning_rate = true;
  const TrainedTable on = trained(ftrl, kTwoSteps);
  expect_near(on.row(), {0.168347, -0.0682993}, kTolerance);
  expect_near(on.slot("linears"), {-0.1409776, 0.0710527}, kTolerance);
}

TEST(SpecRowsD, D18_FtrlOverwritesAFreshRowOfZeroGradientWithZero) {
  const TrainedTable t = trained(tpu::FTRL{.learning_rate = 0.1}, {{{0, {0, 0}}}});
  EXPECT_EQ(t.row(0), (Values{0, 0}));
  EXPECT_EQ(t.slot("linears"), (Values{0, 0}));
  EXPECT_EQ(t.row(1), kOther);
}

TEST(SpecRowsD, D19_FtrlOfPowerZeroHasAFixedRate) {
  const TrainedTable t =
      trained(tpu::FTRL{.learning_rate = 0.1, .learning_rate_power = 0}, kOneStep);
  expect_near(t.row(), {-0.04, 0.02}, kTolerance);
  expect_near(t.slot("linears"), {0.4, -0.2}, kTolerance);
}

TEST(SpecRowsD, D20_AdamHasNoBiasCorrection) {
  const tpu::Adam adam = {.learning_rate = 0.1};
  const TrainedTable one = trained(adam, kOneStep);
  expect_near(one.row(), {0.6837722, -0.1837722}, kTolerance);
  expect_near(one.slot("momenta"), {0.04, -0.02}, kTolerance);
  expect_near(one.slot("velocities"), {0.00016, 4e-05}, kTolerance);
  const TrainedTable two = trained(adam, kTwoSteps);
  expect_near(two.row(), {0.2876339, -0.3937827}, kTolerance);
  expect_near(two.slot("momenta"), {0.056, 0.042}, kTolerance);
  expect_near(two.slot("velocities"), {0.0001998, 0.0004}, kTolerance);
}

TEST(SpecRowsD, D21_EpsilonOfAdamIsInsideOrOutsideTheRoot) {
  tpu::Adam adam = {.learning_rate = 0.1, .epsilon = 0.05};
  expect_near(trained(adam, kOneStep).row(), {0.9224433, -0.4603162}, kTolerance);
  adam.sum_inside_sqrt = false;
  expect_near(trained(adam, kOneStep).row(), {0.9361523, -0.4644915}, kTolerance);
}

TEST(SpecRowsD, D22_LazyAdamLeavesRowsThatWereNotLookedUp) {
  const std::vector<Batch> batches = {{{0, kFirst}}, {{1, kSecond}}};
  tpu::Adam adam = {.learning_rate = 0.1};
  const TrainedTable lazy = trained(adam, batches);
  expect_near(lazy.row(0), {0.6837722, -0.1837722}, kTolerance);
  expect_near(lazy.slot("momenta"), {0.04, -0.02}, kTolerance);
  expect_near(lazy.row(1), {1.6837722, 2.6837722}, kTolerance);
  adam.lazy_adam = false;
  const TrainedTable all = trained(adam, batches);
  expect_near(all.row(0), {0.3990248, 0.1009752}, kTolerance);
  expect_near(all.slot("momenta"), {0.036, -0.018}, kTolerance);
  expect_near(all.slot("velocities"), {0.0001598, 4e-05}, kTolerance);
  expect_near(all.row(1), {1.6837722, 2.6837722}, kTolerance);
}

TEST(SpecRowsD, D23_LazyAdamMovesALookedUpRowWithoutGradient) {
  const TrainedTable t = trained(tpu::Adam{.learning_rate = 0.1}, {{{0, kFirst}}, {{0}}});
  expect_near(t.row(), {0.3990248, 0.1009752}, kTolerance);
}

TEST(SpecRowsD, D24_ADynamicRateCorrectsTheBiasOfAdam) {
  int t = 0;
  const tpu::Adam adam = {.learning_rate = [&t] {
    ++t;
    return 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
  }};
  expect_near(trained(adam, kTwoSteps).row(), {0.806782, -0.449419}, kTolerance);
  EXPECT_EQ(t, 2);

  const optimizers::Adam keras({.learning_rate = 0.1});
  const Variable row(Tensor::from(kStart, {2}), {.name = "row"});
  for (const Values& gradient : {kFirst, kSecond}) {
    keras->apply_gradients({Tensor::from(gradient, {2})}, {row});
  }
  expect_near(row.read().to_vector<float>(), {0.8067835, -0.4494203}, kTolerance);
}

TEST(SpecRowsD, D25_AdamSumsDuplicatesOfOneBatchFirst) {
  tpu::Adam adam = {.learning_rate = 0.1};
  expect_near(trained(adam, kTwiceInOneBatch).row(), {0.6837722, -0.8162278}, kTolerance);
  adam.use_gradient_accumulation = false;
  expect_near(trained(adam, kTwiceInOneBatch).row(), {0.2876339, -0.3937827}, kTolerance);
}

TEST(SpecRowsD, D26_ClipsTheGradientThenDecaysThenStepsThenClipsTheWeight) {
  const TrainedTable t = trained(tpu::Adam{.learning_rate = 0.1,
                                           .clip_weight_min = -0.3,
                                           .clip_weight_max = 0.6,
                                           .weight_decay_factor = 0.1,
                                           .clipvalue = {-0.1, 0.3}},
                                 kOneStep);
  expect_near(t.row(), {0.5837722, -0.1337722}, kTolerance);
  expect_near(t.slot("momenta"), {0.03, -0.01}, kTolerance);
}

TEST(SpecRowsD, D27_MomentumParametersPlainAndNesterov) {
  tpu::MomentumParameters o = {.learning_rate = 0.1, .momentum = 0.9};
  const TrainedTable plain = trained(o, kTwoSteps);
  expect_near(plain.row(), {0.904, -0.522}, kTolerance);
  expect_near(plain.slot("momenta"), {0.56, 0.42}, kTolerance);
  o.use_nesterov = true;
  const TrainedTable nesterov = trained(o, kTwoSteps);
  expect_near(nesterov.row(), {0.8536, -0.5598}, kTolerance);
  expect_near(nesterov.slot("momenta"), {0.56, 0.42}, kTolerance);
}

TEST(SpecRowsD, D28_RMSPropParameters) {
  const TrainedTable t = trained(
      tpu::RMSPropParameters{.learning_rate = 0.1, .rho = 0.9, .momentum = 0.5, .epsilon = 0.01},
      kTwoSteps);
  expect_near(t.row(), {0.5092176, -0.5158617}, kTolerance);
  expect_near(t.slot("ms"), {0.0184, 0.0396}, kTolerance);
  expect_near(t.slot("mom"), {0.2427129, 0.1848925}, kTolerance);
}

TEST(SpecRowsD, D29_ProximalAdagradParameters) {
  const TrainedTable t = trained(tpu::ProximalAdagradParameters{.learning_rate = 0.1,
                                                                .l1_regularization_strength = 0.5,
                                                                .l2_regularization_strength = 0.3},
                                 kOneStep);
  expect_near(t.row(), {0.7777374, -0.2896902}, kTolerance);
  expect_near(t.slot("accumulators"), {0.26, 0.14}, kTolerance);
}

TEST(SpecRowsD, D30_ProximalYogiParameters) {
  const TrainedTable t =
      trained(tpu::ProximalYogiParameters{.learning_rate = 0.05, .beta2 = 0.99}, kTwoSteps);
  expect_near(t.row(), {0.8900088, -0.4851206}, kTolerance);
  expect_near(t.slot("v"), {0.002001, 0.004001}, kTolerance);
  expect_near(t.slot("m"), {0.056, 0.042}, kTolerance);
}

TEST(SpecRowsD, D31_FrequencyEstimatorParametersForTablesOfWidthOne) {
  const tpu::FrequencyEstimatorParameters o = {
      .tau = 0.1, .max_delta = 100, .outlier_threshold = 2, .weight_exponent = 0.5};
  TrainedTable t(o, {{100}, {7}});
  t.step({{0, {0}}}, 10);
  EXPECT_FLOAT_EQ(t.row(0)[0], 91);
  EXPECT_EQ(t.slot("last_hit_step")[0], 10);
  t.step({{0, {0}}}, 400);
  EXPECT_EQ(t.row(0)[0], 100);
  EXPECT_EQ(t.slot("last_hit_step")[0], 400);
  EXPECT_EQ(t.row(1)[0], 7);
  EXPECT_THROW(TrainedTable(o, {{100, 100}}), ValueError);
}

TEST(SpecRowsA, A18_TheSlotFactoryWinsOverTheInitialValue) {
  int calls = 0;
  const auto factory = [&](const TableVariable& table, const std::vector<std::string>& names,
                           const std::vector<Initializer>& initializers) -> SlotVariables {
    ++calls;
    EXPECT_EQ(table.name, "table");
    EXPECT_EQ(table.shape, Shape({2, 2}));
    EXPECT_EQ(names, std::vector<std::string>{"accumulators"});
    EXPECT_EQ(initializers.size(), 1U);
    EXPECT_EQ(initializers[0]({1}).item<float>(), 0.1F);
    return {{"accumulators", initializers::zeros()}};
  };
  const TrainedTable t(
      tpu::Adagrad{.learning_rate = 0.1, .slot_variable_creation_fn = std::ref(factory)});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(t.slot("accumulators", 0), (Values{0, 0}));
  EXPECT_EQ(t.slot("accumulators", 1), (Values{0, 0}));
}

TEST(EmbeddingOptimizerTrainingTest, DecayActsOnEachOccurrenceWithoutAccumulation) {
  const tpu::SGD sgd = {
      .learning_rate = 0.1, .use_gradient_accumulation = false, .weight_decay_factor = 0.5};
  expect_near(trained(sgd, kTwiceInOneBatch).row(),
              {(1 * 0.5 - 0.04) * 0.5 - 0.02, (-0.5 * 0.5 + 0.02) * 0.5 - 0.06}, kTolerance);
}

TEST(EmbeddingOptimizerTrainingTest, NonLazyAdamDecaysAndClipsEveryRow) {
  const TrainedTable t = trained(tpu::Adam{.learning_rate = 0.1,
                                           .lazy_adam = false,
                                           .clip_weight_max = 1.25,
                                           .weight_decay_factor = 0.5},
                                 kOneStep);
  expect_near(t.row(1), {1, 1.25}, kTolerance);
}

TEST(EmbeddingOptimizerTrainingTest, SgdParametersSumDuplicatesOnlyToClipThem) {
  tpu::StochasticGradientDescentParameters o = {.learning_rate = 0.1, .weight_decay_factor = 0.5};
  expect_near(trained(o, kTwiceInOneBatch).row(),
              {(1 * 0.5 - 0.04) * 0.5 - 0.02, (-0.5 * 0.5 + 0.02) * 0.5 - 0.06}, kTolerance);
  o.weight_decay_factor = {};
  o.clip_gradient_max = 0.3;
  expect_near(trained(o, kTwiceInOneBatch).row(), {0.97, -0.53}, kTolerance);
}

TEST(EmbeddingOptimizerTrainingTest,
     ACustomOptimizerStepsEachRowOnceWithTheHyperparametersOfTheStep) {
  int calls = 0;
  const tpu::CustomOptimizer custom = {
      .custom_computation =
          [](const CustomRow& r) {
            for (size_t i = 0; i < r.row.size(); ++i) {
              r.slot(0)[i] += r.gradient[i];
              r.slot(1)[i] += 1;
              r.row[i] -= static_cast<float>(r.learning_rate * r.hyperparameters[0] * r.slot(0)[i] +
                                             r.hyperparameters[1]);
            }
          },
      .learning_rate = 0.1,
      .slot_names = {"sums", "counts"},
      .slot_initializers = {initializers::constant(0.5), "zeros"},
      .hyperparameters = {2.0, [&calls] { return 0.25 * calls++; }}};
  TrainedTable t(custom);
  t.step(kTwiceInOneBatch[0]);
  expect_near(t.slot("sums"), {1.1, 0.9}, kTolerance);
  expect_near(t.row(), {1 - 0.22, -0.5 - 0.18}, kTolerance);
  t.step({{0, {0, 0}}});
  expect_near(t.row(), {0.78 - 0.22 - 0.25, -0.68 - 0.18 - 0.25}, kTolerance);
  EXPECT_EQ(t.slot("counts", 0), (Values{2, 2}));
  EXPECT_EQ(t.slot("counts", 1), (Values{0, 0}));
  EXPECT_EQ(t.slot("sums", 1), (Values{0.5, 0.5}));
  EXPECT_EQ(calls, 2);
}

TEST(EmbeddingOptimizerTrainingTest, LaPropCorrectsItsBiasByTheNumberOfSteps) {
  double step = 0;
  TrainedTable t(tpu::LaProp{.learning_rate = 0.1, .global_step = [&step] { return step++; }});
  for (const Batch& batch : kTwoSteps) t.step(batch);
  expect_near(t.row(), {0.8893983, -0.475071}, kTolerance);
  expect_near(t.slot("mu"), {0.6701273, 0.1865995}, kTolerance);
  expect_near(t.slot("nu"), {0.09846154, 0.2041026}, kTolerance);
  EXPECT_EQ(t.row(1), kOther);
  const TrainedTable constant = trained(tpu::LaProp{.learning_rate = 0.1}, kTwoSteps);
  expect_near(constant.row(), {0.5406462, -0.3150183}, kTolerance);
  expect_near(constant.slot("nu"), {0.0096, 0.0199}, kTolerance);
}

TEST(EmbeddingOptimizerTrainingTest, LaPropOfAZeroGradientIsFinite) {
  const TrainedTable t = trained(tpu::LaProp{.learning_rate = 0.1, .eps = 0}, {{{0, {0, 0}}}});
  EXPECT_EQ(t.row(), kStart);
}

// In the steps 4 and 9 the row has its first and second update.
TEST(EmbeddingOptimizerTrainingTest, F2ARaisesTheRateOfRareRows) {
  const auto trained_by = [](tpu::F2A options) {
    double step = -1;
    options.learning_rate = 0.1;
    options.global_step = [&step] { return step += 5; };
    TrainedTable t(options);
    for (const Batch& batch : kTwoSteps) t.step(batch);
    EXPECT_EQ(t.slot("local_steps"), (Values{2, 2}));
    EXPECT_EQ(t.slot("local_steps", 1), (Values{0, 0}));
    expect_near(t.slot("accumulators"), {0.3, 0.5}, kTolerance);
    return t.row();
  };
  expect_near(trained_by({}), {0.7656474, -0.5730955}, kTolerance);
  expect_near(trained_by({.l1_regularization_strength = 0.1,
                          .l2_regularization_strength = 0.2,
                          .max_lr_multiplier = 1.5}),
              {0.7705115, -0.5091044}, kTolerance);
  expect_near(trained(tpu::F2A{.learning_rate = 0.1, .rho = 0}, kTwoSteps).row(),
              {0.8850387, -0.5314006}, kTolerance);
}

}  // namespace keel::table_optimizer_training_test
