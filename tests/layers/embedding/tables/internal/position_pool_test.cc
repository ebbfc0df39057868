// Tests the combiner "max" and gradients of the weights of ids, on the host and on an engine,
// against loops and finite differences.
#include <keel/layers/embedding/tables/internal/position_pool.h>

#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"

namespace keel::position_pool_test {

using distribute::CPUStrategy;
using distribute::TPUStrategy;
using layers::TPUEmbedding;
using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::FloatRows;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::matrix;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::values_of;
using Values = std::vector<float>;

constexpr double kRate = 0.5;
// The second element of rows 1 and 2 is equal, and all elements of row 4 are negative.
const Tensor kTable = matrix({{1, 8}, {2, 5}, {9, 5}, {3, -7}, {-4, -6}});
const IdRows kBags = {{0, 1, 2}, {}, {2, 1}, {4}, {3, 3}};

struct Mode {
  int cores = 0;  // 0: variables on the host; -1: variables of two replicas
};
void PrintTo(const Mode& mode, std::ostream* out) { *out << mode.cores << " cores"; }
const Mode kModes[] = {{0}, {-1}, {1}, {2}};

std::unique_ptr<distribute::Strategy> strategy_of(const Mode& mode) {
  if (mode.cores == 0) return std::make_unique<CPUStrategy>();
  return std::make_unique<TPUStrategy>(
      distribute::TPUStrategyOptions{.num_cores = std::abs(mode.cores) + (mode.cores < 0 ? 1 : 0)});
}

// A layer with one table, under its own strategy. Its loss is the sum of the activations times
// `factors`, divided by the number of replicas, each of which looks up the same batch.
class OneTable {
 public:
  OneTable(const Mode& mode, const std::string& combiner, const Tensor& table = kTable)
      : strategy_(strategy_of(mode)),
        scope_(strategy_->scope()),
        optimizer_(optimizers::SGD({.learning_rate = kRate})),
        table_(make_table({.vocabulary_size = table.dim(0),
                           .dim = table.dim(1),
                           .combiner = combiner,
                           .name = "t"})),
        layer_({.feature_config = FeatureConfig{.table = table_},
                .optimizer = optimizer_,
                .embedding_feature = mode.cores < 0 ? std::optional(EmbeddingFeature::kUnsupported)
                                                    : std::nullopt}) {
    layer_->build(Specs(TensorSpec{
        .shape = {kUnknown, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}));
    layer_->update_embedding_table(table_, table);
  }

  const TPUEmbedding& layer() const { return layer_; }
  Tensor rows() const { return layer_->embedding_tables()[0].second; }
  Tensor look_up(const TensorLike& ids, const std::optional<TensorLike>& weights = {}) {
    Tensor out;
    strategy_->run([&] {
      const Tensor found = call(ids, weights);
      const ReplicaContext* const context = current_replica_context();
      if (context == nullptr || context->replica == 0) out = found;
    });
    return out;
  }
  // Makes a step. Returns the gradient of the weights, which are watched if `trains_weights`, in
  // replica 0.
  Tensor step(const TensorLike& ids, const std::optional<TensorLike>& weights,
              const Tensor& factors, bool trains_weights) {
    Tensor out;
    strategy_->run([&] {
      GradientTape tape({.persistent = true});
      if (trains_weights) tape.watch(weights->values());
      const double share = 1.0 / strategy_->num_replicas_in_sync();
      const Tensor loss = ops::sum(call(ids, weights) * factors) * share;
      if (trains_weights) {
        const Gradient g = tape.input_gradient(loss, {weights->values()})[0];
        const ReplicaContext* const context = current_replica_context();
        if (context == nullptr || context->replica == 0) out = g.dense() * (1 / share);
      }
      const std::vector<Variable> variables = layer_->trainable_variables();
      optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
    });
    return out;
  }

 private:
  Tensor call(const TensorLike& ids, const std::optional<TensorLike>& weights) {
    TPUEmbeddingCallOptions options;
    if (weights) options.weights = Nest<std::optional<TensorLike>>(weights);
    return layer_(Tensors(ids), options).tensor();
  }

  const std::unique_ptr<distribute::Strategy> strategy_;
  const distribute::Strategy::Scope scope_;
  const OptimizerHandle optimizer_;
  const Table table_;
  TPUEmbedding layer_;
};

TEST(PositionPoolTest, MaxIsTheMaximumOfEachElement) {
  const Values expected = {9, 8, 0, 0, 9, 5, -4, -6, 3, -7};
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(testing::PrintToString(mode));
    OneTable one(mode, "max");
    EXPECT_EQ(one.look_up(ragged(kBags)).to_vector<float>(), expected);
    EXPECT_EQ(one.look_up(sparse(kBags, 3)).to_vector<float>(), expected);
  }
}

TEST(PositionPoolTest, TheGradientOfAMaximumBelongsToItsFirstPosition) {
  const Tensor factors = matrix({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}});
  // Row 2 has the maxima of column 0 in samples 0 and 2, row 0 that of column 1 in sample 0. In
  // sample 2 row 2 is the first of two equal ones. Sample 4 has row 3 twice and counts once.
  const Values expected = {1,
                           8 - kRate * 2,
                           2,
                           5,
                           9 - kRate * 6,
                           5 - kRate * 6,
                           3 - kRate * 9,
                           -7 - kRate * 10,
                           -4 - kRate * 7,
                           -6 - kRate * 8};
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(testing::PrintToString(mode));
    OneTable one(mode, "max");
    one.step(ragged(kBags), {}, factors, false);
    EXPECT_EQ(one.rows().to_vector<float>(), expected);
  }
}

TEST(PositionPoolTest, MaxOfTheMidLevelObject) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 3,
                                  .dim = 1,
                                  .initializer = tpu::RowIdInitializer(1),
                                  .combiner = "max",
                                  .name = "t"});
  tpu::TPUEmbedding embedding(FeatureConfig{.table = table}, tpu::SGD{.learning_rate = 1});
  const Tensors batch = ragged(IdRows{{0, 2, 1}, {0}});
  embedding.enqueue(distribute::PerReplica<Tensors>({batch, batch}));
  strategy.run([&] {
    EXPECT_EQ(values_of(embedding.dequeue()), (Values{3, 1}));
    embedding.apply_gradients(Gradient(matrix({{0.25}, {0.5}})));
  });
  embedding.enqueue(distribute::PerReplica<Tensors>({batch, batch}), {.training = false});
  strategy.run([&] { EXPECT_EQ(values_of(embedding.dequeue()), (Values{2.5, 0})); });
}

TEST(PositionPoolTest, MaxTakesNoWeights) {
  for (const Mode& mode : kModes) {
    OneTable one(mode, "max");
    EXPECT_THAT(
        message_of<ValueError>([&] { one.look_up(ragged(IdRows{{1}}), ragged(FloatRows{{2}})); }),
        HasSubstr("combiner max"));
  }
  EXPECT_THAT(message_of<ValueError>(
                  [] { make_table({.vocabulary_size = 2, .dim = 1, .combiner = "min"}); }),
              HasSubstr("must be mean, sum, sqrtn or max, received 'min'"));
  EXPECT_THROW(make_table({.dim = 1,
                           .combiner = "max",
                           .dynamic = DynamicVocabulary{.not_admitted = NotAdmitted::ignore()}}),
               NotImplementedError);
}

const FloatRows kWeights = {{0.5, 2, 1}, {}, {0.25, 3}, {1.5}, {2, 0.75}};

// The loss, from the formulas, in float64.
double loss_of(const std::string& combiner, const std::vector<std::vector<double>>& weights,
               const Tensor& factors) {
  const auto table = kTable.data<float>(), c = factors.data<float>();
  double loss = 0;
  for (size_t s = 0; s < kBags.size(); ++s) {
    double sum = 0, squares = 0;
    for (const double w : weights[s]) {
      sum += w;
      squares += w * w;
    }
    const double divisor = combiner == "sum" ? 1 : combiner == "mean" ? sum : std::sqrt(squares);
    for (size_t k = 0; k < kBags[s].size(); ++k) {
      for (int64_t d = 0; d < 2; ++d) {
        loss += c[s * 2 + d] * weights[s][k] * table[kBags[s][k] * 2 + d] / divisor;
      }
    }
  }
  return loss;
}

TEST(PositionPoolTest, GradientsOfWeightsAreThoseOfTheFormulas) {
  const Tensor factors = matrix({{1, 2}, {3, 4}, {-5, 6}, {7, 8}, {9, -1}});
  std::vector<std::vector<double>> weights;
  for (const auto& row : kWeights) weights.emplace_back(row.begin(), row.end());
  for (const char* combiner : {"sum", "mean", "sqrtn"}) {
    std::vector<double> expected;
    for (auto& row : weights) {
      for (double& w : row) {
        const double at = w, h = 1e-5;
        w = at + h;
        const double above = loss_of(combiner, weights, factors);
        w = at - h;
        expected.push_back((above - loss_of(combiner, weights, factors)) / (2 * h));
        w = at;
      }
    }
    for (const Mode& mode : kModes) {
      SCOPED_TRACE(str(combiner, ", ", testing::PrintToString(mode)));
      // The tables must be updated as if the weights were not watched.
      OneTable plain(mode, combiner), one(mode, combiner), of_sparse(mode, combiner);
      plain.step(ragged(kBags), ragged(kWeights), factors, false);
      const Tensor g = one.step(ragged(kBags), ragged(kWeights), factors, true);
      expect_near(g.to_vector<float>(), expected, {.absolute = 1e-4, .relative = 1e-4});
      expect_near(one.rows(), plain.rows(), {.absolute = 1e-5, .relative = 1e-5});
      const Tensor of = of_sparse.step(sparse(kBags, 3), sparse(kWeights, 3), factors, true);
      expect_near(of.to_vector<float>(), expected, {.absolute = 1e-4, .relative = 1e-4});
    }
  }
}

TEST(PositionPoolTest, WeightsThatAreDroppedHaveTheGradientZero) {
  const Tensor factors = matrix({{1, 1}});
  // On the host, sparse ids with weights that are not positive are dropped by mean.
  OneTable one({0}, "mean");
  const Tensor g =
      one.step(sparse(IdRows{{0, 1}}, 2), sparse(FloatRows{{-1, 2}}, 2), factors, true);
  expect_near(g.to_vector<float>(), Values{0, 0}, {.absolute = 1e-6});
  // mean of one row does not depend on its weight; a divisor of 0 has no gradient.
  OneTable engine({2}, "mean");
  const Tensor zero =
      engine.step(ragged(IdRows{{0, 1}}), ragged(FloatRows{{-1, 1}}), factors, true);
  EXPECT_EQ(zero.to_vector<float>(), (Values{0, 0}));
}

TEST(PositionPoolTest, WeightsMayBeComputedFromAVariable) {
  for (const Mode& mode : kModes) {
    SCOPED_TRACE(testing::PrintToString(mode));
    OneTable one(mode, "sum");
    const Variable scale(floats({3}), {.name = "scale"});
    const RaggedTensor ids = ragged(IdRows{{0, 1}}).ragged();
    distribute::Strategy::current().run([&] {
      GradientTape tape;
      const Tensor values = ops::gather(scale.read(), testing_support::ids({0, 0}));
      TPUEmbeddingCallOptions options;
      options.weights = Nest<std::optional<TensorLike>>(
          TensorLike(RaggedTensor{.values = values, .row_splits = ids.row_splits}));
      const Tensor found = one.layer()(Tensors(TensorLike(ids)), options).tensor();
      EXPECT_EQ(found.to_vector<float>(), (Values{9, 39}));
      const Gradient g = tape.gradient(ops::sum(found), {scale})[0];
      EXPECT_EQ(g.dense().to_vector<float>(), Values{16});
    });
    EXPECT_EQ(one.rows().to_vector<float>(), kTable.to_vector<float>())
        << "only the gradient of the tables updates them";
  }
}

}  // namespace keel::position_pool_test
