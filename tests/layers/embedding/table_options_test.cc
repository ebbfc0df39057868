// Tests options of tables and of their optimizers against sums by hand, for tables in engines and
// for tables that are variables: clipnorm, global_clipnorm, l2, max_norm, trainable, and row-wise
// Adagrad. Tests distribute/embedding/internal/row_updater_norms.cc.
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/embedding/rowwise_adagrad.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/expectations.h"

namespace keel::table_options_test {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::expect_near;
using testing_support::message_of;

using Row = std::vector<double>;
using Rows = std::map<int64_t, Row>;  // by row number
constexpr int64_t kSamples = 4;

// Where the tables are: as variables of one replica, as variables of several, or in an engine.
struct Holder {
  bool engine = true;
  int hosts = 1, cores = 1;
  bool cpu = false;
};
void PrintTo(const Holder& h, std::ostream* out) {
  *out << (h.cpu ? "cpu" : h.engine ? "engine" : "v0") << " " << h.hosts << "x" << h.cores;
}
const Holder kCpu = {.engine = false, .cpu = true};
const Holder kHolders[] = {kCpu,
                           {.engine = false, .cores = 2},
                           {.engine = true, .cores = 1},
                           {.engine = true, .cores = 2},
                           {.engine = true, .hosts = 2, .cores = 2}};
const Holder kEngines[] = {{.cores = 1}, {.cores = 2}, {.hosts = 2, .cores = 2}};

std::unique_ptr<distribute::Strategy> strategy_of(const Holder& h) {
  if (h.cpu) return std::make_unique<distribute::CPUStrategy>();
  return std::make_unique<distribute::TPUStrategy>(
      distribute::TPUStrategyOptions{.num_hosts = h.hosts, .num_cores = h.cores});
}

// Features 0 and 1 look up table 0 (6 x 3, sum), feature 2 table 1 (4 x 2, sum).
const std::vector<std::vector<int64_t>> kIds[3] = {
    {{0, 1}, {1}, {}, {5, 5, 2}}, {{3}, {0}, {0, 4}, {1}}, {{0}, {1, 2}, {2}, {0, 1}}};
constexpr int64_t kDims[2] = {3, 2}, kRows[2] = {6, 4};
int table_of(int feature) { return feature / 2; }
// The gradient of an activation.
double gradient_of(int feature, int64_t sample, int64_t d) {
  return 0.5 * static_cast<double>(sample + 1) + 0.25 * static_cast<double>(d) - 0.75 * feature;
}
double start_of(int64_t row, int64_t d) { return 0.3 * static_cast<double>(row + 1) - 0.2 * d; }

// The rows' gradients of one step, by table.
std::vector<Rows> gradients() {
  std::vector<Rows> out(2);
  for (int f = 0; f < 3; ++f) {
    for (int64_t s = 0; s < kSamples; ++s) {
      for (const int64_t id : kIds[f][s]) {
        Row& row = out[table_of(f)].try_emplace(id, kDims[table_of(f)], 0.0).first->second;
        for (size_t d = 0; d < row.size(); ++d) row[d] += gradient_of(f, s, static_cast<int>(d));
      }
    }
  }
  return out;
}

double squares(const Rows& rows) {
  double out = 0;
  for (const auto& [id, row] : rows) {
    for (const double x : row) out += x * x;
  }
  return out;
}
void scale(Rows& rows, double factor) {
  for (auto& [id, row] : rows) {
    for (double& x : row) x *= factor;
  }
}

// The two tables, in float64.
std::vector<std::vector<Row>> starting_tables() {
  std::vector<std::vector<Row>> out(2);
  for (int t = 0; t < 2; ++t) {
    for (int64_t r = 0; r < kRows[t]; ++r) {
      Row& row = out[t].emplace_back();
      for (int64_t d = 0; d < kDims[t]; ++d) row.push_back(start_of(r, d));
    }
  }
  return out;
}

std::vector<double> flat(const std::vector<Row>& rows) {
  std::vector<double> out;
  for (const Row& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

// A layer with the two tables, and the optimizer of its variables.
class Training {
 public:
  // `own` is the optimizer that the layer receives; unset: `optimizer`.
  Training(const Holder& holder, const OptimizerHandle& optimizer, TableConfig first = {},
           TableConfig second = {}, const std::optional<EmbeddingOptimizer>& own = {},
           bool pipelined = false, const std::string& partition = "div")
      : strategy_(strategy_of(holder)), scope_(strategy_->scope()), optimizer_(optimizer) {
    TableConfig* const configs[] = {&first, &second};
    for (int t = 0; t < 2; ++t) {
      configs[t]->vocabulary_size = configs[t]->dynamic ? 0 : kRows[t];
      configs[t]->dim = kDims[t];
      configs[t]->combiner = "sum";
      configs[t]->name = t == 0 ? "first" : "second";
      tables_.push_back(make_table(*configs[t]));
    }
    Nest<FeatureConfig>::Items features;
    for (int f = 0; f < 3; ++f) features.push_back(FeatureConfig{.table = tables_[table_of(f)]});
    TPUEmbeddingOptions options{.feature_config = Nest<FeatureConfig>::list(std::move(features)),
                                .optimizer = own ? *own : EmbeddingOptimizer(optimizer_),
                                .pipeline_execution_with_tensor_core = pipelined,
                                .partition_strategy = partition};
    if (!holder.engine && !holder.cpu) options.embedding_feature = EmbeddingFeature::kUnsupported;
    layer_.emplace(std::move(options));
    (*layer_)->build(specs_of(batch(0, 1)));
    const auto start = starting_tables();
    for (int t = 0; t < 2; ++t) {
      const std::vector<double> flat_values = flat(start[t]);
      const Tensor values = Tensor::from(std::vector<float>(flat_values.begin(), flat_values.end()),
                                         {kRows[t], kDims[t]});
      if (configs[t]->dynamic) {
        std::vector<int64_t> keys(kRows[t]);
        std::iota(keys.begin(), keys.end(), 0);
        (*layer_)->dynamic_table(tables_[t]).assign_rows(Tensor::from(keys, {kRows[t]}), values);
      } else {
        (*layer_)->update_embedding_table(tables_[t], values);
      }
    }
  }

  const layers::TPUEmbedding& layer() const { return *layer_; }

  void step() {
    const int replicas = strategy_->num_replicas_in_sync();
    strategy_->run([&] {
      const ReplicaContext* const context = current_replica_context();
      const int replica = context == nullptr ? 0 : context->replica;
      const int64_t begin = kSamples * replica / replicas,
                    end = kSamples * (replica + 1) / replicas;
      GradientTape tape;
      const Tensors found = (*layer_)(batch(begin, end));
      Tensor loss = Tensor::scalar<float>(0);
      for (int f = 0; f < 3; ++f)
        loss = loss + ops::sum(found[f].tensor() * factors(f, begin, end));
      const std::vector<Variable> variables = (*layer_)->trainable_variables();
      optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
    });
  }

  std::vector<float> table(int t) const {
    return (*layer_)->embedding_tables()[t].second.to_vector<float>();
  }
  void expect_tables(const std::vector<std::vector<Row>>& expected, double tolerance = 1e-5) const {
    for (int t = 0; t < 2; ++t) {
      SCOPED_TRACE(str("table ", t));
      expect_near(table(t), flat(expected[t]), {.absolute = tolerance, .relative = tolerance});
    }
  }
  std::vector<std::string> state_names() const {
    std::vector<std::string> out;
    for (const StateEntry& entry : (*layer_)->state_entries()) out.push_back(entry.name);
    return out;
  }

 private:
  static Tensors batch(int64_t begin, int64_t end) {
    Tensors::Items out;
    for (const auto& rows : kIds) {
      out.push_back(RaggedTensor::from_rows(
          std::vector<std::vector<int64_t>>(rows.begin() + begin, rows.begin() + end)));
    }
    return Tensors::list(std::move(out));
  }
  static Tensor factors(int f, int64_t begin, int64_t end) {
    std::vector<float> out;
    for (int64_t s = begin; s < end; ++s) {
      for (int64_t d = 0; d < kDims[table_of(f)]; ++d) {
        out.push_back(static_cast<float>(gradient_of(f, s, d)));
      }
    }
    return Tensor::from(out, {end - begin, kDims[table_of(f)]});
  }

  const std::unique_ptr<distribute::Strategy> strategy_;
  const distribute::Strategy::Scope scope_;
  const OptimizerHandle optimizer_;
  std::vector<Table> tables_;
  std::optional<layers::TPUEmbedding> layer_;
};

// Applies `steps` steps of SGD by gradients that `change` has changed.
template <class Change>
std::vector<std::vector<Row>> after_sgd(double rate, int steps, const Change& change) {
  auto tables = starting_tables();
  for (int i = 0; i < steps; ++i) {
    std::vector<Rows> all = gradients();
    change(all, tables);
    for (int t = 0; t < 2; ++t) {
      for (const auto& [id, g] : all[t]) {
        for (size_t d = 0; d < g.size(); ++d) tables[t][id][d] -= rate * g[d];
      }
    }
  }
  return tables;
}

using Tables = std::vector<std::vector<Row>>;

TEST(TableOptionsTest, ClipnormBoundsTheGradientOfEachTable) {
  const std::vector<Rows> all = gradients();
  ASSERT_GT(std::sqrt(squares(all[0])), 2);
  ASSERT_LT(std::sqrt(squares(all[1])), 2) << "this table is not clipped";
  const Tables expected = after_sgd(0.5, 2, [](std::vector<Rows>& g, const Tables&) {
    for (Rows& rows : g) scale(rows, 2 / std::max(2.0, std::sqrt(squares(rows))));
  });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 0.5, .clipnorm = 2}));
    training.step();
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableOptionsTest, GlobalClipnormBoundsTheGradientsOfAllTablesTogether) {
  const Tables expected = after_sgd(0.5, 2, [](std::vector<Rows>& g, const Tables&) {
    const double factor = 1.5 / std::max(1.5, std::sqrt(squares(g[0]) + squares(g[1])));
    for (Rows& rows : g) scale(rows, factor);
  });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 0.5, .global_clipnorm = 1.5}));
    training.step();
    training.step();
    training.expect_tables(expected);
  }
}

// The tables are dynamic, or one of them is.
const std::vector<std::pair<TableConfig, TableConfig>> kDynamicTables = {
    {{.dynamic = DynamicVocabulary{}}, {.dynamic = DynamicVocabulary{}}},
    {{.dynamic = DynamicVocabulary{}}, {}},
    {{}, {.dynamic = DynamicVocabulary{}}}};
const Holder kDynamicHolders[] = {
    kCpu, {.cores = 1}, {.cores = 2}, {.hosts = 2, .cores = 1}, {.hosts = 2, .cores = 2}};

TEST(TableOptionsTest, D041NormsOfDynamicTablesAreThoseOfTheStaticTwin) {
  const Tables each = after_sgd(0.5, 2, [](std::vector<Rows>& g, const Tables&) {
    for (Rows& rows : g) scale(rows, 2 / std::max(2.0, std::sqrt(squares(rows))));
  });
  const Tables together = after_sgd(0.5, 2, [](std::vector<Rows>& g, const Tables&) {
    const double factor = 1.5 / std::max(1.5, std::sqrt(squares(g[0]) + squares(g[1])));
    for (Rows& rows : g) scale(rows, factor);
  });
  for (const Holder& holder : kDynamicHolders) {
    for (const auto& [first, second] : kDynamicTables) {
      SCOPED_TRACE(testing::PrintToString(holder));
      Training clipped(holder, optimizers::SGD({.learning_rate = 0.5, .clipnorm = 2}), first,
                       second);
      clipped.step();
      clipped.step();
      clipped.expect_tables(each);
    }
    for (const auto& [first, second] : kDynamicTables) {
      SCOPED_TRACE(testing::PrintToString(holder));
      Training clipped(holder, optimizers::SGD({.learning_rate = 0.5, .global_clipnorm = 1.5}),
                       first, second);
      clipped.step();
      clipped.step();
      clipped.expect_tables(together);
    }
  }
}

TEST(TableOptionsTest, TablesWithOtherOptimizersDoNotShareAGlobalNorm) {
  const Tables expected = after_sgd(1, 1, [](std::vector<Rows>& g, const Tables&) {
    scale(g[0], 1.5 / std::sqrt(squares(g[0])));
    scale(g[1], 0.5 * 0.6 / std::sqrt(squares(g[1])));
  });
  for (const Holder& holder : kEngines) {
    Training training(holder, optimizers::SGD({}),
                      {.optimizer = tpu::SGD{.learning_rate = 1, .global_clipnorm = 1.5}},
                      {.optimizer = tpu::SGD{.learning_rate = 0.5, .global_clipnorm = 0.6}});
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableOptionsTest, NormsAreThoseOfTheSummedRowsForRulesWithSlots) {
  // Adagrad: a = 0.1 + g^2; the epsilon of Keras's is below the tolerance.
  Tables expected = starting_tables();
  std::vector<std::map<int64_t, Row>> slots(2);
  for (int i = 0; i < 3; ++i) {
    std::vector<Rows> all = gradients();
    for (int t = 0; t < 2; ++t) {
      scale(all[t], 0.7 / std::sqrt(squares(all[t])));
      for (const auto& [id, g] : all[t]) {
        Row& a = slots[t].try_emplace(id, g.size(), 0.1).first->second;
        for (size_t d = 0; d < g.size(); ++d) {
          a[d] += g[d] * g[d];
          expected[t][id][d] -= 0.2 * g[d] / std::sqrt(a[d]);
        }
      }
    }
  }
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::Adagrad({.learning_rate = 0.2, .clipnorm = 0.7}));
    for (int i = 0; i < 3; ++i) training.step();
    training.expect_tables(expected, 2e-5);
  }
}

TEST(TableOptionsTest, ClippingWorksWithUpdatesOfAllRowsAndWithDelayedUpdates) {
  for (const bool pipelined : {false, true}) {
    std::optional<std::vector<float>> first;
    for (const Holder& holder : kEngines) {
      Training training(holder, optimizers::SGD({}), {}, {},
                        tpu::Adam{.learning_rate = 0.1, .lazy_adam = false, .clipnorm = 1},
                        pipelined);
      Training lazy(holder, optimizers::SGD({}), {}, {},
                    tpu::Adam{.learning_rate = 0.1, .clipnorm = 1}, pipelined);
      for (int i = 0; i < 2; ++i) {
        training.step();
        lazy.step();
      }
      if (!first) first = training.table(0);
      expect_near(training.table(0), *first, {.absolute = 1e-5, .relative = 1e-5});
      expect_near(lazy.table(0), *first, {.absolute = 1e-5, .relative = 1e-5});
    }
  }
}

TEST(TableOptionsTest, AGradientThatIsNotFiniteReachesAllRowsOfTheNorm) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  tpu::TPUEmbedding embedding(
      FeatureConfig{.table = make_table({.vocabulary_size = 3, .dim = 1, .initializer = "ones"})},
      tpu::SGD{.learning_rate = 1, .clipnorm = 1});
  const Tensors batch = testing_support::ids({0, 1, 2});
  const Tensors trained = testing_support::ids({0, 1, 1});
  embedding.enqueue(distribute::PerReplica<Tensors>({trained, trained}));
  strategy.run([&] {
    embedding.dequeue();
    embedding.apply_gradients(
        Gradient(testing_support::floats({std::numeric_limits<float>::infinity(), 1, 1}, {3, 1})));
  });
  embedding.enqueue(distribute::PerReplica<Tensors>({batch, batch}), {.training = false});
  strategy.run([&] {
    const Tensor rows = embedding.dequeue().tensor();
    EXPECT_TRUE(std::isnan(rows.data<float>()[0]));
    EXPECT_TRUE(std::isnan(rows.data<float>()[1]));
    EXPECT_EQ(rows.data<float>()[2], 1);
  });
}

TEST(TableOptionsTest, ClippingByNormIsChecked) {
  EXPECT_THAT(message_of<ValueError>([] { EmbeddingOptimizer(tpu::SGD{.clipnorm = -1}); }),
              HasSubstr("clipnorm must not be negative, received -1"));
  EXPECT_THAT(message_of<ValueError>(
                  [] { EmbeddingOptimizer(tpu::Adam{.clipvalue = 1, .global_clipnorm = 1}); }),
              HasSubstr("at most one of clipvalue, clipnorm and global_clipnorm"));
  EXPECT_THAT(message_of<ValueError>([] {
                EmbeddingOptimizer(tpu::Adagrad{.use_gradient_accumulation = false, .clipnorm = 1});
              }),
              HasSubstr("clipnorm requires use_gradient_accumulation"));
}

// a += mean(g^2); w -= rate g / (sqrt(a) + epsilon).
Tables after_rowwise_adagrad(double rate, double initial, double epsilon, int steps,
                             std::vector<std::map<int64_t, double>>& slots) {
  Tables out = starting_tables();
  slots.assign(2, {});
  for (int i = 0; i < steps; ++i) {
    const std::vector<Rows> all = gradients();
    for (int t = 0; t < 2; ++t) {
      for (const auto& [id, g] : all[t]) {
        double& a = slots[t].try_emplace(id, initial).first->second;
        double sum = 0;
        for (const double x : g) sum += x * x;
        a += sum / static_cast<double>(g.size());
        for (size_t d = 0; d < g.size(); ++d) {
          out[t][id][d] -= rate * g[d] / (std::sqrt(a) + epsilon);
        }
      }
    }
  }
  return out;
}

TEST(TableOptionsTest, RowwiseAdagradKeepsOneAccumulatorPerRow) {
  std::vector<std::map<int64_t, double>> slots;
  const Tables expected = after_rowwise_adagrad(0.3, 0.2, 0.05, 3, slots);
  for (const Holder& holder : kEngines) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({}), {}, {},
                      tpu::RowwiseAdagrad{
                          .learning_rate = 0.3, .initial_accumulator_value = 0.2, .epsilon = 0.05});
    for (int i = 0; i < 3; ++i) training.step();
    training.expect_tables(expected);
    const Tensor a = fixture::state_of(training.layer(), "first/accumulators");
    ASSERT_EQ(a.shape(), Shape({kRows[0], 1}));
    for (int64_t r = 0; r < kRows[0]; ++r) {
      const double value = slots[0].contains(r) ? slots[0][r] : 0.2;
      EXPECT_NEAR(a.data<float>()[r], value, 1e-5 * value);
    }
  }
}

TEST(TableOptionsTest, RowwiseAdagradOfHalfTablesStaysNearTheFloatTables) {
  std::vector<std::map<int64_t, double>> slots;
  const Tables expected = after_rowwise_adagrad(0.3, 0.2, 0.05, 2, slots);
  const TableConfig half = {.storage_dtype = "bfloat16"};
  Training training(
      {.cores = 2}, optimizers::SGD({}), half, half,
      tpu::RowwiseAdagrad{.learning_rate = 0.3, .initial_accumulator_value = 0.2, .epsilon = 0.05});
  for (int i = 0; i < 2; ++i) training.step();
  training.expect_tables(expected, 0.02);  // bfloat16 has 8 bits
  const Tensor a = fixture::state_of(training.layer(), "second/accumulators");
  EXPECT_NEAR(a.data<float>()[2], slots[1][2], 1e-5) << "slots are float32";
}

TEST(TableOptionsTest, RowwiseAdagradMovesBetweenEnginesAndVariables) {
  const tpu::RowwiseAdagrad rowwise = {.learning_rate = 0.3, .initial_accumulator_value = 0.2};
  Training trained({.hosts = 2, .cores = 2}, optimizers::SGD({}), {}, {}, rowwise);
  trained.step();
  const Training host(kCpu, optimizers::SGD({}), {}, {}, rowwise);
  EXPECT_EQ(fixture::state_of(host.layer(), "first/accumulators").to_vector<float>(),
            std::vector<float>(kRows[0], 0.2F));
  EXPECT_EQ(fixture::state_of(host.layer(), "second/accumulators").shape(), Shape({kRows[1], 1}));
  std::vector<std::string> names = host.state_names();
  for (const std::string& name : trained.state_names()) {
    EXPECT_THAT(names, testing::Contains(name));
  }
  // Restored into other engines, both continue alike.
  Training other({.cores = 1}, optimizers::SGD({}), {}, {}, rowwise);
  for (const StateEntry& entry : trained.layer()->state_entries()) {
    for (const StateEntry& to : other.layer()->state_entries()) {
      if (to.name == entry.name) to.set(entry.get());
    }
  }
  trained.step();
  other.step();
  expect_near(other.table(0), trained.table(0), {.relative = 1e-6});
}

TEST(TableOptionsTest, RowwiseAdagradIsWrittenToConfigs) {
  const EmbeddingOptimizer optimizer =
      tpu::RowwiseAdagrad{.learning_rate = 0.25, .epsilon = 0.125, .clipnorm = 3};
  EmbeddingOptimizer decoded;
  decode(encode(optimizer), decoded);
  EXPECT_EQ(decoded, optimizer);
  EXPECT_EQ(decoded->clipnorm, 3);
  EXPECT_THROW(EmbeddingOptimizer(tpu::RowwiseAdagrad{.epsilon = -1}), ValueError);
}

TEST(TableOptionsTest, TablesThatAreNotTrainedKeepTheirRows) {
  const Tables expected =
      after_sgd(0.5, 2, [](std::vector<Rows>& g, const Tables&) { g[0].clear(); });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::Adagrad({.learning_rate = 0.5}), {.trainable = false}, {},
                      {});
    const std::vector<float> before = training.table(0), trained_before = training.table(1);
    training.step();
    EXPECT_EQ(training.table(0), before);
    EXPECT_NE(training.table(1), trained_before);
    Training sgd(holder, optimizers::SGD({.learning_rate = 0.5}), {.trainable = false});
    sgd.step();
    sgd.step();
    sgd.expect_tables(expected);
  }
}

TEST(TableOptionsTest, TablesThatAreNotTrainedHaveNoSlotsAndNeedNoOptimizer) {
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    const Training training(holder, optimizers::SGD({}), {.trainable = false}, {},
                            tpu::Adam{.learning_rate = 0.5});
    std::vector<std::string> names = training.state_names();
    EXPECT_THAT(names, testing::Contains(HasSubstr("second/momenta")));
    for (const std::string& name : names) EXPECT_THAT(name, testing::Not(HasSubstr("first/")));
  }
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const layers::TPUEmbedding frozen(
      {.feature_config = FeatureConfig{
           .table = make_table({.vocabulary_size = 4, .dim = 1, .trainable = false})}});
  frozen->build(Specs(TensorSpec{.shape = {1}, .dtype = DType::kInt64}));
  EXPECT_EQ(frozen->embedding_tables()[0].second.shape(), Shape({4, 1}));
  tpu::TPUEmbedding mid_level(
      FeatureConfig{.table = make_table({.vocabulary_size = 4, .dim = 1, .trainable = false})}, {});
  EXPECT_EQ(mid_level.tracked()->state_entries().size(), 1U);
}

// Adds 2 l2 w to the gradients of the rows that occur, and limits the norms of these rows.
Tables after_regularized_sgd(double rate, double l2, double max_norm) {
  Tables tables = starting_tables();
  for (int i = 0; i < 2; ++i) {
    const std::vector<Rows> all = gradients();
    for (int t = 0; t < 2; ++t) {
      for (const auto& [id, g] : all[t]) {
        Row& w = tables[t][id];
        double sum = 0;
        for (size_t d = 0; d < g.size(); ++d) {
          w[d] -= rate * (g[d] + 2 * l2 * w[d]);
          sum += w[d] * w[d];
        }
        if (max_norm == 0 || std::sqrt(sum) <= max_norm) continue;
        for (double& x : w) x *= max_norm / std::sqrt(sum);
      }
    }
  }
  return tables;
}

TEST(TableOptionsTest, PenaltiesAndLimitsConcernTheRowsOfTheBatch) {
  for (const auto& [l2, max_norm] :
       {std::pair(0.3, 0.0), std::pair(0.0, 0.9), std::pair(0.2, 1.1)}) {
    const Tables expected = after_regularized_sgd(0.25, l2, max_norm);
    const TableConfig config = {.l2 = l2, .max_norm = max_norm};
    for (const Holder& holder : kHolders) {
      SCOPED_TRACE(testing::PrintToString(holder));
      Training training(holder, optimizers::SGD({.learning_rate = 0.25}), config, config);
      training.step();
      training.step();
      training.expect_tables(expected);
      // No sample has id 3 of the second table, whose norm is 1.56.
      const std::vector<float> second = training.table(1);
      EXPECT_EQ(second[6], static_cast<float>(start_of(3, 0)));
      EXPECT_EQ(second[7], static_cast<float>(start_of(3, 1)));
    }
  }
}

TEST(TableOptionsTest, PenaltiesAreAddedAfterClipping) {
  Tables expected = starting_tables();
  std::vector<Rows> all = gradients();
  for (int t = 0; t < 2; ++t) {
    scale(all[t], 0.5 / std::sqrt(squares(all[t])));
    for (const auto& [id, g] : all[t]) {
      for (size_t d = 0; d < g.size(); ++d) expected[t][id][d] -= g[d] + 0.4 * expected[t][id][d];
    }
  }
  const TableConfig config = {.l2 = 0.2};
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 1, .clipnorm = 0.5}), config,
                      config);
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableOptionsTest, OptionsOfTablesAreCheckedAndWrittenToConfigs) {
  EXPECT_THAT(
      message_of<ValueError>([] { make_table({.vocabulary_size = 2, .dim = 2, .l2 = -1}); }),
      HasSubstr("l2 must be finite and not negative"));
  EXPECT_THROW(make_table({.vocabulary_size = 2, .dim = 2, .max_norm = NAN}), ValueError);
  const Training training(kCpu, optimizers::SGD({}), {.trainable = false},
                          {.l2 = 0.25, .max_norm = 2});
  const auto copy = TPUEmbeddingLayer::from_config(training.layer()->get_config());
  const std::vector<FeatureConfig> features = flatten(copy->feature_config());
  EXPECT_FALSE(features[0].table->trainable);
  EXPECT_TRUE(features[2].table->trainable);
  EXPECT_EQ(features[2].table->l2, 0.25);
  EXPECT_EQ(features[2].table->max_norm, 2);
}

TEST(TableOptionsTest, ThePartitionOfRowsChangesNoResult) {
  for (const Holder& holder : {kCpu, Holder{.hosts = 2, .cores = 2}, Holder{.hosts = 3}}) {
    SCOPED_TRACE(testing::PrintToString(holder));
    const OptimizerHandle adagrad = optimizers::Adagrad({.learning_rate = 0.2});
    Training div(holder, adagrad, {}, {}, tpu::Adagrad{.learning_rate = 0.2});
    Training mod(holder, adagrad, {}, {}, tpu::Adagrad{.learning_rate = 0.2}, false, "mod");
    for (int i = 0; i < 2; ++i) {
      div.step();
      mod.step();
    }
    for (int t = 0; t < 2; ++t) EXPECT_EQ(mod.table(t), div.table(t));
    const auto copy = TPUEmbeddingLayer::from_config(mod.layer()->get_config());
    EXPECT_EQ(copy->get_config()["partition_strategy"].string(), "mod");
  }
  EXPECT_THAT(
      message_of<ValueError>([] {
        layers::TPUEmbedding(
            {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = 2, .dim = 1})},
             .partition_strategy = "row"});
      }),
      HasSubstr("partition_strategy must be div or mod, received 'row'"));
}

}  // namespace keel::table_options_test
