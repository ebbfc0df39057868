// Checkpoints of embedding tables can be restored under every way to hold the tables.
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/update_rule.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/internal/layer_state.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>

#include "tests/support/temporary_folder.h"

namespace keel::embedding_checkpoint_test {

using testing_support::TemporaryFolder;

constexpr int kCpu = 0, kV0 = -1;

// The storage of the tables: as variables (kCpu), as variables under a TPUStrategy (kV0), or in an
// engine of hosts x cores.
struct Holder {
  int hosts = kCpu;
  int cores = 1;
};

std::string name_of(const Holder& h) {
  return h.hosts == kCpu ? "cpu"
                         : str(h.hosts == kV0 ? "v0" : "tpu", "_", std::abs(h.hosts), "x", h.cores);
}

std::vector<Holder> holders() {
  std::vector<Holder> out = {{.hosts = kCpu}, {.hosts = kV0, .cores = 2}};
  for (int hosts = 1; hosts <= 3; ++hosts) {
    for (int cores : {1, 2, 3, 4, 8}) out.push_back({hosts, cores});
  }
  return out;
}

std::unique_ptr<distribute::Strategy> strategy_of(const Holder& h) {
  if (h.hosts == kCpu) return std::make_unique<distribute::CPUStrategy>();
  return std::make_unique<distribute::TPUStrategy>(
      distribute::TPUStrategyOptions{.num_hosts = std::abs(h.hosts), .num_cores = h.cores});
}

// Trains two tables, one with fewer rows than some numbers of hosts.
class Training {
 public:
  Training(const Holder& holder, const OptimizerHandle& optimizer)
      : strategy_(strategy_of(holder)), scope_(strategy_->scope()), optimizer_(optimizer) {
    const Table users = make_table({.vocabulary_size = 29, .dim = 3, .name = "users"});
    const Table days =
        make_table({.vocabulary_size = 2, .dim = 2, .combiner = "sum", .name = "days"});
    TPUEmbeddingOptions options{.feature_config = {{"day", FeatureConfig{.table = days}},
                                                   {"user", FeatureConfig{.table = users}}},
                                .optimizer = optimizer_};
    if (holder.hosts == kV0) options.embedding_feature = EmbeddingFeature::kUnsupported;
    layer_.emplace(std::move(options));
    step(0);
  }

  // Every replica looks up the same ids; the loss is divided by the number of replicas.
  void step(int number) {
    const Tensors features = {
        {"day", RaggedTensor::from_rows<int64_t>({{0, 1}, {number % 2}, {}})},
        {"user", RaggedTensor::from_rows<int64_t>({{number, 28}, {3, 3, number + 7}, {12}})}};
    const double share = 1.0 / strategy_->num_replicas_in_sync();
    strategy_->run([&] {
      GradientTape tape;
      const Tensors found = (*layer_)(features);
      const Tensor loss = (ops::sum(ops::square(found["day"].tensor()) + found["day"].tensor()) +
                           ops::sum(ops::square(found["user"].tensor()))) *
                          share;
      const std::vector<Variable> variables = (*layer_)->trainable_variables();
      optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
    });
  }

  Checkpoint checkpoint() const {
    return Checkpoint({.model = *layer_, .optimizers = {{"adagrad", optimizer_}}});
  }
  // Returns tables and slots by name.
  std::map<std::string, std::vector<float>> values() const {
    std::map<std::string, std::vector<float>> out;
    for_each_state_entry(**layer_, [&](const std::string& path, const StateEntry& entry) {
      out[path] = entry.get().to_vector<float>();
    });
    for (const Variable& v : (*layer_)->trainable_variables()) {
      const std::vector<Slot> slots = optimizer_->rule().slots();
      for (size_t s = 0; s < slots.size() && !v.is_virtual(); ++s) {
        out[v.name() + "/" + slots[s].name] = optimizer_->slots(v)[s].read().to_vector<float>();
      }
    }
    return out;
  }

 private:
  const std::unique_ptr<distribute::Strategy> strategy_;
  const distribute::Strategy::Scope scope_;
  const OptimizerHandle optimizer_;
  std::optional<layers::TPUEmbedding> layer_;
};

class EmbeddingCheckpointTest : public testing::TestWithParam<Holder> {};

TEST_P(EmbeddingCheckpointTest, EveryModeRestoresBitForBitAndContinuesTraining) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  const auto adagrad = [] { return optimizers::Adagrad({.learning_rate = 0.3}); };
  std::map<std::string, std::vector<float>> saved, trained_on;
  {
    Training from(GetParam(), adagrad());
    for (int i = 1; i < 3; ++i) from.step(i);
    from.checkpoint().write(path, 3);
    saved = from.values();
    from.step(3);
    trained_on = from.values();
  }
  ASSERT_EQ(saved.size(), 4U);
  for (const Holder& holder : holders()) {
    SCOPED_TRACE("restored in " + name_of(holder));
    Training to(holder, adagrad());
    to.step(11);
    ASSERT_NE(to.values(), saved);
    to.checkpoint().restore(path).assert_consumed();
    ASSERT_EQ(to.values(), saved);
    to.step(3);
    // The epsilon of Keras's Adagrad and the order of sums over replicas differ from the engine's.
    for (const auto& [name, values] : to.values()) {
      const std::vector<float>& expected = trained_on.at(name);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], expected[i], 1e-5 * std::max(1.0F, std::abs(expected[i]))) << name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Holders, EmbeddingCheckpointTest, testing::ValuesIn(holders()),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace keel::embedding_checkpoint_test
