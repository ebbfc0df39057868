// Resuming from a checkpoint gives the bits of the run that was not interrupted: every optimizer,
// for static and dynamic tables, under both strategies, with one and with two optimizers.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::resume_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;

struct Setting {
  std::string optimizer;
  bool dynamic = false, tpu = false, two_optimizers = false;

  // The others train Embedding, whose table is a variable.
  bool uses_tpu_embedding() const {
    const std::set<std::string> engines_support = {"sgd", "adagrad", "adam", "ftrl"};
    return engines_support.contains(optimizer);
  }
};

// A table and a dense layer on top of it.
class Job {
 public:
  explicit Job(const Setting& setting)
      : strategy_(setting.tpu ? std::unique_ptr<distribute::Strategy>(
                                    std::make_unique<distribute::TPUStrategy>(
                                        distribute::TPUStrategyOptions{.num_cores = 2}))
                              : std::make_unique<distribute::CPUStrategy>()),
        scope_(strategy_->scope()),
        of_table_(optimizers::get(setting.optimizer)),
        of_rest_(setting.two_optimizers ? optimizers::Adam({.learning_rate = 0.1}) : of_table_),
        embedding_(embedding_of(setting, of_table_)) {
    const layers::Dense dense({.units = 1});
    if (setting.uses_tpu_embedding()) {
      const RaggedTensor ids =
          layers::ragged_input({.shape = {}, .dtype = DType::kInt64, .name = "ids"});
      const Tensor rows = (*embedding_)(Tensors(ids)).tensor();
      model_.emplace(FunctionalOptions{.inputs = ids, .outputs = dense(rows)});
    } else {
      const Tensor ids = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "ids"});
      const Tensor rows = (*embedding_)(Tensors(ids)).tensor();
      model_.emplace(FunctionalOptions{.inputs = ids, .outputs = dense(ops::mean(rows, {1}))});
    }
  }

  void steps(int first, int end) {
    for (int number = first; number < end; ++number) step(number);
  }
  Checkpoint checkpoint() const {
    CheckpointItems items = {.model = *model_, .optimizers = {{"table", of_table_}}};
    if (of_rest_.shared() != of_table_.shared()) items.optimizers.emplace("rest", of_rest_);
    return Checkpoint(std::move(items));
  }

 private:
  static LayerHandle<Layer> embedding_of(const Setting& setting, const OptimizerHandle& optimizer) {
    std::optional<DynamicVocabulary> dynamic;
    if (setting.dynamic) {
      dynamic = DynamicVocabulary{.capacity = 12,
                                  .headroom = 0,
                                  .admission = Admission::count(2),
                                  .eviction = Eviction::lfu({.ttl = 9}),
                                  .not_admitted = NotAdmitted::hashed(2)};
    }
    const int64_t rows = setting.dynamic ? 0 : 20;
    if (!setting.uses_tpu_embedding()) {
      return layers::Embedding({.input_dim = rows, .output_dim = 3, .dynamic = dynamic});
    }
    const Table table =
        make_table({.vocabulary_size = rows, .dim = 3, .name = "items", .dynamic = dynamic});
    return layers::TPUEmbedding(
        {.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer});
  }

  // Each of two samples has three ids.
  void step(int number) {
    strategy_->run([&] {
      const ReplicaContext* const context = current_replica_context();
      const int replica = context == nullptr ? 0 : context->replica;
      std::mt19937_64 random(static_cast<uint64_t>(10 * number + replica));
      std::vector<std::vector<int64_t>> ids(2);
      for (std::vector<int64_t>& sample : ids) {
        for (int i = 0; i < 3; ++i) sample.push_back(static_cast<int64_t>(random() % 20));
      }
      std::vector<Variable> table, rest;
      for (const Variable& variable : (*model_)->trainable_variables()) {
        const auto owned = (*embedding_)->trainable_variables();
        const bool is_table = std::ranges::any_of(
            owned, [&](const Variable& own) { return own.id() == variable.id(); });
        (is_table ? table : rest).push_back(variable);
      }
      GradientTape tape({.persistent = true});
      const RaggedTensor ragged = RaggedTensor::from_rows(ids);
      const bool is_ragged = (*model_)->inputs().leaf().layout() == Layout::kRagged;
      const Tensors batch =
          is_ragged ? Tensors(ragged) : Tensors(ops::reshape(ragged.values, {2, 3}));
      const Tensor y = (*model_)(batch).tensor();
      const Tensor loss = ops::sum(ops::square(y) + y);
      if (of_rest_.shared() == of_table_.shared()) {
        table.insert(table.end(), rest.begin(), rest.end());
        rest.clear();
      }
      const std::vector<Gradient> gradients = tape.gradient(loss, rest);
      of_table_->apply_gradients(tape.gradient(loss, table), table);
      if (!rest.empty()) of_rest_->apply_gradients(gradients, rest);
    });
  }

  const std::unique_ptr<distribute::Strategy> strategy_;
  const distribute::Strategy::Scope scope_;
  const OptimizerHandle of_table_, of_rest_;
  std::optional<LayerHandle<Layer>> embedding_;
  std::optional<Functional> model_;
};

std::map<std::string, std::vector<std::byte>> values_of(const std::string& path) {
  std::map<std::string, std::vector<std::byte>> out;
  const CheckpointReader file(path);
  for (const auto& [key, stored] : file.index()) {
    const Tensor value = file.read(key);
    if (value.dtype() == DType::kString) {
      for (const std::string& text : value.data<std::string>()) {
        for (const char c : text) out[key].push_back(static_cast<std::byte>(c));
      }
    } else {
      out[key].assign(value.raw().begin(), value.raw().end());
    }
  }
  return out;
}

class ResumeTest : public testing::TestWithParam<std::tuple<const char*, bool, bool, bool>> {};

TEST_P(ResumeTest, GivesTheBitsOfTheUninterruptedRun) {
  const auto [optimizer, dynamic, tpu, two] = GetParam();
  const Setting setting = {
      .optimizer = optimizer, .dynamic = dynamic, .tpu = tpu, .two_optimizers = two};
  constexpr int kSteps = 24;
  const TemporaryFolder folder;
  set_random_seed(5);
  std::mt19937_64 random(7);
  std::vector<int> stops(kSteps);
  std::iota(stops.begin(), stops.end(), 0);
  std::ranges::shuffle(stops, random);
  stops.resize(std::string(optimizer) == "adagrad" ? 20 : 4);
  {
    Job whole(setting);
    for (int step = 0; step < kSteps; ++step) {
      if (std::ranges::count(stops, step) > 0) {
        whole.checkpoint().write(folder / str(step, ".h5"), step);
      }
      whole.steps(step, step + 1);
    }
    whole.checkpoint().write(folder / "whole.h5", kSteps);
  }
  const auto expected = values_of(folder / "whole.h5");
  for (const int stop : stops) {
    Job resumed(setting);
    resumed.checkpoint().restore(folder / str(stop, ".h5"));
    resumed.steps(stop, kSteps);
    resumed.checkpoint().write(folder / "resumed.h5", kSteps);
    const auto values = values_of(folder / "resumed.h5");
    ASSERT_EQ(values.size(), expected.size());
    for (const auto& [key, value] : expected) {
      EXPECT_TRUE(values.at(key) == value) << key << " after a stop at step " << stop;
    }
  }
}

std::string name_of(const testing::TestParamInfo<ResumeTest::ParamType>& info) {
  const auto [optimizer, dynamic, tpu, two] = info.param;
  return str(optimizer, dynamic ? "_dynamic" : "_static", tpu ? "_tpu" : "_cpu",
             two ? "_two_optimizers" : "");
}

// Optimizers of tables, which engines support too.
INSTANTIATE_TEST_SUITE_P(Tables, ResumeTest,
                         testing::Combine(testing::Values("sgd", "adagrad", "adam", "ftrl"),
                                          testing::Bool(), testing::Bool(), testing::Bool()),
                         name_of);
// Optimizers of variables that update single rows.
INSTANTIATE_TEST_SUITE_P(Variables, ResumeTest,
                         testing::Combine(testing::Values("adadelta", "adamax", "adamw", "nadam",
                                                          "rmsprop", "lion"),
                                          testing::Bool(), testing::Values(false), testing::Bool()),
                         name_of);
// Optimizers that need whole variables.
INSTANTIATE_TEST_SUITE_P(WholeVariables, ResumeTest,
                         testing::Combine(testing::Values("lamb", "adafactor"),
                                          testing::Values(false), testing::Values(false),
                                          testing::Bool()),
                         name_of);

TEST(RestoreTest, AnotherOptimizerOfADynamicTableIsAnError) {
  const TemporaryFolder folder;
  for (const bool two : {false, true}) {
    Job adagrad({.optimizer = "adagrad", .dynamic = true, .two_optimizers = two});
    adagrad.steps(0, 3);
    adagrad.checkpoint().write(folder / "a.h5", 3);
    const Job sgd({.optimizer = "sgd", .dynamic = true, .two_optimizers = two});
    EXPECT_THAT(message_of<ValueError>([&] { sgd.checkpoint().restore(folder / "a.h5"); }),
                HasSubstr("accumulator"));
    EXPECT_NO_THROW(sgd.checkpoint().restore(folder / "a.h5", {.partial = true}));
  }
}

}  // namespace keel::resume_test
