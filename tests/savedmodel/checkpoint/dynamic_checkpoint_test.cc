// Checkpoints of tables with dynamic ids, in engines and as variables.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::dynamic_checkpoint_test {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::message_of;
using testing_support::TemporaryFolder;

constexpr int kCpu = 0;

OptimizerHandle adagrad() { return optimizers::Adagrad({.learning_rate = 0.1}); }

DynamicVocabulary usual(KeyType key) {
  return {.key = key,
          .capacity = 12,
          .headroom = 0,
          .admission = Admission::count(2, {.max_pending = 9}),
          .eviction = Eviction::lfu({.ttl = 9}),
          .not_admitted = NotAdmitted::hashed(2)};
}

// Trains a table under a strategy of so many hosts with two cores each; kCpu: as a variable.
class Training {
 public:
  // A static table of the ids 0 ... 19 unless `dynamic` is set.
  Training(int hosts, const std::optional<DynamicVocabulary>& dynamic,
           const OptimizerHandle& optimizer = adagrad(), int64_t dim = 3)
      : strings_(dynamic && dynamic->key == KeyType::kString),
        strategy_(
            hosts == kCpu
                ? std::unique_ptr<distribute::Strategy>(std::make_unique<distribute::CPUStrategy>())
                : std::make_unique<distribute::TPUStrategy>(
                      distribute::TPUStrategyOptions{.num_hosts = hosts, .num_cores = 2 / hosts})),
        scope_(strategy_->scope()),
        optimizer_(optimizer),
        table_(make_table({.vocabulary_size = dynamic ? 0 : 20,
                           .dim = dim,
                           .name = "items",
                           .dynamic = dynamic})) {
    layer_.emplace(TPUEmbeddingOptions{.feature_config = FeatureConfig{.table = table_},
                                       .optimizer = optimizer_});
    const TensorSpec spec = {.shape = {kUnknown, kUnknown},
                             .dtype = strings_ ? DType::kString : DType::kInt64,
                             .layout = Layout::kRagged};
    (*layer_)->build(Specs(spec));
  }

  // Replica r of R has samples r * 4 / R ... of four.
  void step(uint64_t number) {
    strategy_->run([&] {
      const ReplicaContext* const context = current_replica_context();
      const int replicas = context == nullptr ? 1 : context->replicas;
      const int replica = context == nullptr ? 0 : context->replica;
      const TensorLike batch =
          samples(number, replica * 4 / replicas, (replica + 1) * 4 / replicas);
      GradientTape tape;
      const Tensor found = (*layer_)(Tensors(batch)).tensor();
      const auto variables = (*layer_)->trainable_variables();
      const Tensor loss = ops::sum(ops::square(found) + found);
      optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
    });
  }
  void steps(uint64_t first, uint64_t end) {
    for (uint64_t number = first; number < end; ++number) step(number);
  }

  Checkpoint checkpoint() const {
    return Checkpoint({.model = *layer_, .optimizers = {{"optimizer", optimizer_}}});
  }
  std::vector<float> rows() const {
    return (*layer_)->embedding_tables()[0].second.to_vector<float>();
  }
  DynamicTable table() const { return (*layer_)->dynamic_table(table_); }

 private:
  TensorLike samples(uint64_t number, int first, int end) const {
    std::mt19937_64 random(number);
    std::vector<std::vector<int64_t>> ids(4);
    std::vector<std::vector<std::string>> words(4);
    for (int s = 0; s < 4; ++s) {
      for (int i = 0; i < 3; ++i) {
        ids[s].push_back(static_cast<int64_t>(random() % 20));
        words[s].push_back("w" + std::to_string(ids[s].back()));
      }
    }
    if (strings_) {
      return RaggedTensor::from_rows(
          std::vector<std::vector<std::string>>(words.begin() + first, words.begin() + end));
    }
    return RaggedTensor::from_rows(
        std::vector<std::vector<int64_t>>(ids.begin() + first, ids.begin() + end));
  }

  const bool strings_;
  const std::unique_ptr<distribute::Strategy> strategy_;
  const distribute::Strategy::Scope scope_;
  const OptimizerHandle optimizer_;
  const Table table_;
  std::optional<layers::TPUEmbedding> layer_;
};

template <class T>
void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.to_vector<T>(), b.to_vector<T>());
}

// Expects equal bits of everything but the names of slots.
void expect_same(const DynamicTableState& a, const DynamicTableState& b) {
  if (a.keys.dtype() == DType::kString) {
    expect_same<std::string>(a.keys, b.keys);
    expect_same<std::string>(a.pending_keys, b.pending_keys);
  } else {
    expect_same<int64_t>(a.keys, b.keys);
    expect_same<int64_t>(a.pending_keys, b.pending_keys);
  }
  expect_same<float>(a.rows, b.rows);
  expect_same<int64_t>(a.count, b.count);
  expect_same<int64_t>(a.last, b.last);
  expect_same<int64_t>(a.born, b.born);
  expect_same<int64_t>(a.pending_count, b.pending_count);
  expect_same<int64_t>(a.pending_last, b.pending_last);
  expect_same<float>(a.fallback, b.fallback);
  EXPECT_EQ(a.sketch, b.sketch);
  EXPECT_EQ(a.statistics, b.statistics);
  ASSERT_EQ(a.slots.size(), b.slots.size());
  for (auto i = a.slots.begin(), j = b.slots.begin(); i != a.slots.end(); ++i, ++j) {
    expect_same<float>(i->second, j->second);
  }
  for (auto i = a.fallback_slots.begin(), j = b.fallback_slots.begin(); i != a.fallback_slots.end();
       ++i, ++j) {
    expect_same<float>(i->second, j->second);
  }
}

TEST(DynamicCheckpointTest, D090RestoringContinuesWithTheBitsOfAnUninterruptedRun) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  for (const KeyType key : {KeyType::kInt64, KeyType::kString}) {
    for (const int hosts : {kCpu, 1, 2}) {
      SCOPED_TRACE(str(hosts, ' ', static_cast<int>(key)));
      set_random_seed(4);
      Training whole(hosts, usual(key));
      whole.steps(0, 8);
      whole.checkpoint().write(path, 8);
      whole.steps(8, 16);
      set_random_seed(99);  // the saved stream continues, not that of the new program
      Training restored(hosts, usual(key));
      restored.checkpoint().restore(path).assert_consumed();
      restored.steps(8, 16);
      expect_same(restored.table().state(), whole.table().state());
    }
  }
}

TEST(DynamicCheckpointTest, D090SketchesAndEmptyTablesAreSaved) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  const DynamicVocabulary dynamic = {.admission = Admission::sketch(3, {.width = 4}),
                                     .not_admitted = NotAdmitted::zero()};
  for (const uint64_t steps : {0, 1, 6}) {
    Training saved(1, dynamic), restored(1, dynamic);
    saved.steps(0, steps);
    saved.checkpoint().write(path, 0);
    restored.checkpoint().restore(path).assert_consumed();
    expect_same(restored.table().state(), saved.table().state());
  }
}

TEST(DynamicCheckpointTest, D095EnginesAndVariablesReadEachOthersCheckpoints) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  for (const bool from_engine : {false, true}) {
    Training from(from_engine ? 1 : kCpu, usual(KeyType::kInt64));
    from.steps(0, 6);
    from.checkpoint().write(path, 0);
    Training to(from_engine ? kCpu : 1, usual(KeyType::kInt64));
    to.checkpoint().restore(path);
    expect_same(to.table().state(), from.table().state());
    to.steps(6, 9);
  }
}

TEST(DynamicCheckpointTest, D092OptionsMayChange) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  Training saved(1, usual(KeyType::kInt64));
  saved.steps(0, 8);
  saved.checkpoint().write(path, 0);
  const DynamicTableState before = saved.table().state();
  ASSERT_GT(before.keys.size(), 4);
  ASSERT_GT(before.pending_keys.size(), 0);

  DynamicVocabulary smaller = usual(KeyType::kInt64);
  smaller.capacity = 4;
  smaller.admission = Admission::count(3);
  Training fewer(1, smaller);
  fewer.checkpoint().restore(path);
  const DynamicTableState after = fewer.table().state();
  EXPECT_EQ(after.keys.size(), 4);
  EXPECT_EQ(after.statistics.evicted_capacity,
            before.statistics.evicted_capacity + before.keys.size() - 4);
  EXPECT_EQ(after.pending_keys.size(), before.pending_keys.size());

  DynamicVocabulary other = usual(KeyType::kInt64);
  other.admission = Admission::always();
  other.not_admitted = NotAdmitted::hashed(3, "ones");
  Training changed(1, other);
  changed.checkpoint().restore(path);
  EXPECT_EQ(changed.table().state().pending_keys.size(), 0);
  EXPECT_THAT(changed.table().state().fallback.to_vector<float>(),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(DynamicCheckpointTest, D092TheStatusListsFallbackRowsOfAnotherNumber) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  for (const int hosts : {kCpu, 1, 2}) {
    SCOPED_TRACE(hosts);
    Training saved(hosts, usual(KeyType::kInt64));
    saved.steps(0, 8);
    saved.checkpoint().write(path, 0);

    const auto restored_with = [&](const NotAdmitted& not_admitted) {
      DynamicVocabulary changed = usual(KeyType::kInt64);
      changed.not_admitted = not_admitted;
      Training other(hosts, changed);
      other.steps(0, 3);  // restoring replaces what this run has learned
      const RestoreStatus status = other.checkpoint().restore(path);
      const DynamicTableState state = other.table().state();
      EXPECT_EQ(state.keys.to_vector<int64_t>(), saved.table().keys().to_vector<int64_t>());
      EXPECT_THAT(status.missing, IsEmpty());
      return std::pair(status, state);
    };

    const auto [equal, kept] = restored_with(NotAdmitted::hashed(2, "ones"));
    EXPECT_THAT(equal.initialized, IsEmpty());
    EXPECT_THAT(equal.unused, IsEmpty());
    equal.assert_consumed();
    EXPECT_EQ(kept.fallback.to_vector<float>(), saved.table().state().fallback.to_vector<float>());

    const auto [more, initial] = restored_with(NotAdmitted::hashed(3, "ones"));
    ASSERT_EQ(more.initialized.size(), 2);
    EXPECT_THAT(more.initialized, AllOf(Contains(EndsWith("items/fallback")),
                                        Contains(HasSubstr("items/fallback/accumulator"))));
    EXPECT_THAT(more.unused, IsEmpty());
    EXPECT_THAT(message_of<ValueError>([&] { more.assert_consumed(); }),
                HasSubstr("initialized because their number differs: "));
    EXPECT_THAT(initial.fallback.to_vector<float>(), Each(1.0F));
    for (const auto& [name, slot] : initial.fallback_slots) {
      EXPECT_THAT(slot.to_vector<float>(), AllOf(SizeIs(9), Each(0.1F)));
    }

    const auto [none, without] = restored_with(NotAdmitted::zero());
    EXPECT_THAT(none.initialized, IsEmpty());
    EXPECT_THAT(none.unused, AllOf(SizeIs(2), Contains(EndsWith("items/fallback"))));
    EXPECT_EQ(without.fallback.dim(0), 0);
  }
}

TEST(DynamicCheckpointTest, D093OtherKindsOfTablesAreRejected) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  Training saved(1, usual(KeyType::kInt64));
  saved.steps(0, 8);
  saved.checkpoint().write(path, 0);
  const auto expect_refused = [&](const DynamicVocabulary& dynamic, int64_t dim,
                                  const std::string& part) {
    Training other(1, dynamic, adagrad(), dim);
    EXPECT_THAT(message_of<ValueError>([&] { other.checkpoint().restore(path); }), HasSubstr(part));
    EXPECT_EQ(other.table().size(), 0);
  };
  expect_refused(usual(KeyType::kString), 3, "items/keys");
  expect_refused(usual(KeyType::kInt64), 4, "items");
  DynamicVocabulary full = usual(KeyType::kInt64);
  full.eviction = Eviction::none();
  full.capacity = 2;
  expect_refused(full, 3, "capacity 2");
}

TEST(DynamicCheckpointTest, D094AStaticTableBecomesADynamicOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  for (const int hosts : {kCpu, 1, 2}) {
    Training fixed(hosts, std::nullopt);
    fixed.steps(0, 6);
    fixed.checkpoint().write(path, 6);
    Training dynamic(hosts, DynamicVocabulary{.capacity = 30, .eviction = Eviction::lru()});
    dynamic.checkpoint().restore(path);
    EXPECT_EQ(dynamic.rows(), fixed.rows());
    const DynamicTableState state = dynamic.table().state();
    EXPECT_EQ(state.keys.to_vector<int64_t>().back(), 19);
    EXPECT_EQ(state.count.to_vector<int64_t>(), std::vector<int64_t>(20));
    EXPECT_EQ(state.statistics.size, 20);
    EXPECT_EQ(state.statistics.assigned, 20);
    fixed.steps(6, 12);
    dynamic.steps(6, 12);
    EXPECT_EQ(dynamic.rows(), fixed.rows());
  }
  const auto message = [&](const DynamicVocabulary& vocabulary) {
    Training refused(1, vocabulary);
    return message_of<ValueError>([&] { refused.checkpoint().restore(path); });
  };
  EXPECT_THAT(message({.capacity = 10, .eviction = Eviction::lru()}), HasSubstr("capacity 10"));
  EXPECT_THAT(message({.key = KeyType::kString}), HasSubstr("ids are strings"));
}

// Writes a copy of a checkpoint with another value of one entry.
void write_damaged(const std::string& from, const std::string& to, const std::string& key,
                   const Tensor& value) {
  const CheckpointReader file(from);
  std::vector<CheckpointValue> values;
  for (const auto& [name, stored] : file.index()) {
    const Tensor of = name == key ? value : file.read(name);
    values.push_back({.key = name, .spec = of.spec(), .optimizer = stored.optimizer, .get = [of] {
                        return of;
                      }});
  }
  write_checkpoint(to, file.step(), values);
}

TEST(DynamicCheckpointTest, D097DamagedFilesAreRefusedWithoutAChange) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5", bad = folder / "bad.h5";
  for (const int hosts : {kCpu, 2}) {
    Training saved(hosts, usual(KeyType::kInt64));
    saved.steps(0, 8);
    saved.checkpoint().write(path, 0);
    Training other(hosts, usual(KeyType::kInt64));
    other.steps(20, 23);
    const DynamicTableState before = other.table().state();
    const std::string name = [&] {
      const CheckpointReader file(path);
      for (const auto& [key, value] : file.index()) {
        if (key.ends_with("/keys") && !key.ends_with("pending/keys")) return key;
      }
      return std::string();
    }();
    const std::string table = name.substr(0, name.size() - std::string("/keys").size());
    const auto expect_refused = [&](const std::string& part, const std::vector<int64_t>& values,
                                    const std::string& reason, const std::string& named = {}) {
      write_damaged(path, bad, table + part, Tensor::from(values, {std::ssize(values)}));
      EXPECT_THAT(message_of<IoError>([&] { other.checkpoint().restore(bad); }),
                  AllOf(HasSubstr("bad.h5"), HasSubstr(table + (named.empty() ? part : named)),
                        HasSubstr(reason)));
      expect_same(other.table().state(), before);
    };
    const auto stored = [&](const std::string& part) {
      return CheckpointReader(path).read(table + part).to_vector<int64_t>();
    };
    std::vector<int64_t> keys = stored("/keys"), twice = keys;
    ASSERT_GE(keys.size(), 3U);
    twice[1] = twice[0];
    expect_refused("/keys", twice, "distinct");
    std::ranges::reverse(keys);
    expect_refused("/keys", keys, "key shard");
    std::vector<int64_t> count = stored("/count"), shorter(count.begin() + 1, count.end());
    expect_refused("/count", shorter, "other parts");
    count[0] = -1;
    expect_refused("/count", count, "counts must be in");
    std::vector<int64_t> last = stored("/last");
    last[0] = 1'000'000;
    expect_refused("/last", last, "times must be in");
    std::vector<int64_t> shards = stored("/shards");
    shards[500] = shards.back() + 1;
    expect_refused("/shards", shards, "must ascend");
    // The first id in another shard than its own.
    shards = stored("/shards");
    for (size_t shard = 1; shard + 1 < shards.size(); ++shard) shards[shard] = shards.back();
    expect_refused("/shards", shards, "belongs to key shard", "/keys");
    shards.pop_back();
    expect_refused("/shards", shards, "must be int64");
    std::vector<int64_t> pending = stored("/pending/keys");
    ASSERT_GE(pending.size(), 2U);
    pending[1] = pending[0];
    expect_refused("/pending/keys", pending, "distinct");
    write_damaged(path, bad, table + "/state", Tensor::scalar(std::string("{")));
    EXPECT_THAT(message_of<IoError>([&] { other.checkpoint().restore(bad); }),
                HasSubstr(table + "/state"));
    expect_same(other.table().state(), before);
  }
}

TEST(DynamicCheckpointTest, OneOptimizerOfAnyClassHasItsSlotsInTheTable) {
  const TemporaryFolder folder;
  const std::string path = folder / "checkpoint.h5";
  const auto adam = [] { return optimizers::Adam({.learning_rate = 0.01}); };
  Training whole(kCpu, usual(KeyType::kInt64), adam());
  whole.steps(0, 5);
  whole.checkpoint().write(path, 0);
  whole.steps(5, 9);
  Training restored(kCpu, usual(KeyType::kInt64), adam());
  restored.checkpoint().restore(path).assert_consumed();
  restored.steps(5, 9);
  expect_same(restored.table().state(), whole.table().state());
}

}  // namespace keel::dynamic_checkpoint_test
