// Tests distribute/embedding/internal/keyed_batch_lookup.cc, keyed_rounds.cc,
// keyed_table_rounds.cc, keyed_table_shares.cc, keyed_table_state.cc and
// distribute/dynamic/internal/keyed_peers.cc, saved_table.cc: tables for unbounded ids in several
// processes, which are threads of this one.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include "tests/distribute/fake_processes.h"
#include "tests/support/errors.h"

namespace keel::distribute::keyed_processes_test {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::message_of;

constexpr int kHosts = 3, kCores = 2;

// A table of a job and how it is trained.
struct Program {
  DynamicVocabulary dynamic = {};
  RowUpdate update = {.rule = std::make_shared<AdagradRule>(0.1, 0)};
  kernels::StorageType storage = kernels::StorageType::kFloat32;
  bool pipelined = false;
  int64_t ids = 60;  // of which batches are drawn
};

Tensor key_tensor(const std::vector<int64_t>& keys, KeyType type) {
  if (type == KeyType::kInt64) return Tensor::from(keys, {std::ssize(keys)});
  std::vector<std::string> texts;
  for (const int64_t key : keys) texts.push_back(str("item-", key));
  return Tensor::from(texts, {std::ssize(texts)});
}

// One process of a job. The strategy has kHosts hosts of kCores cores over all processes.
class Job {
 public:
  Job(const Program& program, ProcessGroup& group)
      : program_(program),
        strategy_({.num_hosts = kHosts, .num_cores = kCores}, group),
        engine_({.tables = {{.name = "items",
                             .rows = program.dynamic.capacity,
                             .dim = 2,
                             .combiner = Combiner::kMean,
                             .update = program.update,
                             .storage = program.storage,
                             .dynamic = program.dynamic}},
                 .features = {{.table_id = 0}, {.table_id = 0}},
                 .num_hosts = kHosts,
                 .num_tensor_cores = kHosts * kCores,
                 .pipeline_execution_with_tensor_core = program.pipelined},
                {.first = strategy_.first_local_replica(),
                 .count = strategy_.num_local_replicas(),
                 .group = &group}) {
    const Initializer uniform = initializers::random_uniform(-0.5, 0.5, 7);
    table().set_initial_rows({2, uniform, uniform, {.seed = 7, .purpose = 3}});
  }

  KeyedTable& table() { return *engine_.keyed_table(0); }
  // Runs the update with this number. Returns the activations of the local replicas.
  std::vector<std::vector<float>> train(int64_t number) { return step(number, true); }
  std::vector<std::vector<float>> evaluate(int64_t number) { return step(number, false); }
  void drain() {
    strategy_.run([&] { engine_.drain(strategy_.communicator()); });
  }

 private:
  std::vector<std::vector<float>> step(int64_t number, bool training) {
    const std::vector<std::vector<float>> found =
        strategy_
            .run([&] {
              const int replica = current_replica_context()->replica;
              const auto activations =
                  engine_.lookup(strategy_.communicator(),
                                 {bag(number, replica, 0), bag(number, replica, 1)}, training);
              std::vector<float> out = activations.values[0].to_vector<float>();
              const std::vector<float> more = activations.values[1].to_vector<float>();
              out.insert(out.end(), more.begin(), more.end());
              if (!training) return out;
              std::vector<Tensor> gradients;
              for (const Tensor& value : activations.values) {
                Tensor gradient = Tensor::uninitialized(value.shape(), DType::kFloat32);
                for (int64_t i = 0; i < value.size(); ++i) {
                  gradient.mutable_data<float>()[i] =
                      0.3F * value.data<float>()[i] + 0.01F * static_cast<float>(i + replica);
                }
                gradients.push_back(gradient);
              }
              engine_.apply(strategy_.communicator(), activations.ticket, gradients,
                            {{.learning_rate = 0.1, .iteration = number}});
              return out;
            })
            .values();
    return found;
  }
  // Four samples of up to three ids, some of which repeat.
  FeatureBatch bag(int64_t number, int replica, int feature) const {
    std::mt19937_64 random(number * 100 + replica * 10 + feature);
    std::vector<int64_t> keys, splits = {0};
    for (int sample = 0; sample < 4; ++sample) {
      for (auto n = random() % 4; n > 0; --n) {
        keys.push_back(static_cast<int64_t>(random() % program_.ids) - 9);
      }
      splits.push_back(std::ssize(keys));
    }
    return {.ids = key_tensor(keys, program_.dynamic.key),
            .row_splits = Tensor::from(splits, {std::ssize(splits)}),
            .weights = {}};
  }

  const Program program_;
  TPUStrategy strategy_;
  EmbeddingEngine engine_;
};

// Runs fn in every process of a job; fn must not throw.
void in_processes(int processes, const std::function<void(ProcessGroup&)>& fn) {
  FakeJob job(processes);
  EXPECT_THAT(job.run(fn), Each(""));
}

void expect_equal(const DynamicTableState& a, const DynamicTableState& b) {
  const auto bytes = [](const Tensor& t) {
    if (t.dtype() == DType::kString) return str(testing::PrintToString(t.to_vector<std::string>()));
    return std::string(reinterpret_cast<const char*>(t.raw().data()), t.raw().size());
  };
  for (const auto part :
       {&DynamicTableState::keys, &DynamicTableState::rows, &DynamicTableState::count,
        &DynamicTableState::last, &DynamicTableState::born, &DynamicTableState::pending_keys,
        &DynamicTableState::pending_count, &DynamicTableState::pending_last,
        &DynamicTableState::fallback}) {
    EXPECT_EQ(bytes(a.*part), bytes(b.*part));
  }
  for (const auto& [name, slot] : a.slots) EXPECT_EQ(bytes(slot), bytes(b.slots.at(name)));
  for (const auto& [name, slot] : a.fallback_slots) {
    EXPECT_EQ(bytes(slot), bytes(b.fallback_slots.at(name)));
  }
  EXPECT_EQ(a.sketch, b.sketch);
  EXPECT_TRUE(a.statistics == b.statistics);
}

// Expects equal bits of tables and activations in 1, 2 and 3 processes.
void expect_same_in_processes(const Program& program) {
  std::vector<DynamicTableState> states;
  std::vector<std::vector<std::vector<float>>> activations;  // by number of processes, by replica
  for (int processes = 1; processes <= 3; ++processes) {
    std::vector<DynamicTableState> of_processes(processes);
    std::vector<std::vector<std::vector<float>>> found(processes);
    in_processes(processes, [&](ProcessGroup& group) {
      Job job(program, group);
      for (int64_t number = 0; number < 12; ++number) {
        std::vector<std::vector<float>>& mine = found[group.rank()];
        const auto trained = job.train(number);
        mine.insert(mine.end(), trained.begin(), trained.end());
        if (number % 5 == 4) job.evaluate(number + 100);
      }
      job.drain();
      of_processes[group.rank()] = job.table().state();
    });
    for (const DynamicTableState& state : of_processes) expect_equal(of_processes[0], state);
    states.push_back(of_processes[0]);
    EXPECT_GT(states[0].keys.size(), 3);
    expect_equal(states[0], states.back());
    // By update, then by replica, as one process has them.
    const size_t updates = 12;
    std::vector<std::vector<float>>& all = activations.emplace_back();
    for (size_t update = 0; update < updates; ++update) {
      for (const auto& mine : found) {
        const size_t local = mine.size() / updates;
        all.insert(all.end(), mine.begin() + static_cast<int64_t>(update * local),
                   mine.begin() + static_cast<int64_t>((update + 1) * local));
      }
    }
    EXPECT_EQ(activations[0], all);
  }
}

TEST(KeyedProcessesTest, D054UnboundedTables) { expect_same_in_processes({}); }

TEST(KeyedProcessesTest, D054StringKeys) {
  expect_same_in_processes({.dynamic = {.key = KeyType::kString,
                                        .admission = Admission::count(2),
                                        .not_admitted = NotAdmitted::hashed(3)}});
}

TEST(KeyedProcessesTest, D054EvictionAndPendingKeysOfAllProcesses) {
  expect_same_in_processes(
      {.dynamic = {.capacity = 20,
                   .headroom = 0.25,
                   .admission = Admission::count(2, {.window = 4, .max_pending = 12}),
                   .eviction = Eviction::lfu({.ttl = 5, .halve_every = 3}),
                   .not_admitted = NotAdmitted::default_row()}});
  expect_same_in_processes(
      {.dynamic = {.capacity = 15,
                   .headroom = 0,
                   .eviction = Eviction::lru({.min_l2_norm = 0.1, .interval = 2})}});
}

TEST(KeyedProcessesTest, D054AFullTableRefusesTheSameIds) {
  expect_same_in_processes({.dynamic = {.capacity = 17,
                                        .admission = Admission::sketch(2, {.width = 8}),
                                        .not_admitted = NotAdmitted::ignore(),
                                        .on_full = OnFull::kRefuse}});
}

TEST(KeyedProcessesTest, D054PipelinedUpdates) {
  expect_same_in_processes({.dynamic = {.capacity = 18,
                                        .admission = Admission::count(2),
                                        .eviction = Eviction::lru(),
                                        .not_admitted = NotAdmitted::hashed(2)},
                            .pipelined = true});
}

TEST(KeyedProcessesTest, D054DenseUpdatesAndOneUpdateForEachOccurrence) {
  const auto adam = std::make_shared<AdamRule>(AdamRuleOptions{});
  expect_same_in_processes({.dynamic = {.admission = Admission::probability(0.5),
                                        .not_admitted = NotAdmitted::default_row()},
                            .update = {.rule = adam, .lazy = false}});
  expect_same_in_processes({.dynamic = {.not_admitted = NotAdmitted::default_row()},
                            .update = {.rule = std::make_shared<AdagradRule>(0.1, 0),
                                       .use_gradient_accumulation = false}});
}

TEST(KeyedProcessesTest, D074SixteenBitRows) {
  for (const auto storage : {kernels::StorageType::kBFloat16, kernels::StorageType::kFloat16}) {
    expect_same_in_processes(
        {.dynamic = {.admission = Admission::count(2), .not_admitted = NotAdmitted::default_row()},
         .storage = storage});
  }
}

// A full table is an error of all replicas of all processes, after which the job continues.
TEST(KeyedProcessesTest, D039AFullTableThrowsInAllProcesses) {
  in_processes(3, [](ProcessGroup& group) {
    Job job({.dynamic = {.capacity = 5}}, group);
    const std::string message = message_of<RuntimeError>([&] { job.train(0); });
    EXPECT_THAT(message, AllOf(HasSubstr("'items' with capacity 5"), HasSubstr("new ids qualify")));
    EXPECT_EQ(job.table().statistics().size, 0);
    EXPECT_EQ(job.table().updates(), 0);
    job.evaluate(1);
    EXPECT_GT(job.table().statistics().inference_looked_up, 0);
  });
}

TEST(KeyedProcessesTest, D091AStateIsRestoredInAnyNumberOfProcesses) {
  const Program program = {.dynamic = {.capacity = 25,
                                       .admission = Admission::count(2, {.max_pending = 20}),
                                       .eviction = Eviction::lru(),
                                       .not_admitted = NotAdmitted::hashed(2)}};
  DynamicTableState at_six, at_end;
  in_processes(1, [&](ProcessGroup& group) {
    Job job(program, group);
    for (int64_t number = 0; number < 12; ++number) {
      if (number == 6) at_six = job.table().state();
      job.train(number);
    }
    at_end = job.table().state();
  });
  for (int writers = 1; writers <= 3; ++writers) {
    DynamicTableState saved;
    in_processes(writers, [&](ProcessGroup& group) {
      Job job(program, group);
      for (int64_t number = 0; number < 6; ++number) job.train(number);
      job.drain();
      const DynamicTableState state = job.table().state();
      if (group.rank() == 0) saved = state;
    });
    expect_equal(at_six, saved);
    for (int readers = 1; readers <= 3; ++readers) {
      in_processes(readers, [&](ProcessGroup& group) {
        Job job(program, group);
        job.table().restore(saved);
        for (int64_t number = 6; number < 12; ++number) job.train(number);
        job.drain();
        const DynamicTableState state = job.table().state();
        if (group.rank() == 0) expect_equal(at_end, state);
      });
    }
  }
}

TEST(KeyedProcessesTest, MemoryIsThatOfAllProcesses) {
  const Program program = {.dynamic = {.admission = Admission::sketch(2, {.width = 4})}};
  for (int processes = 1; processes <= 3; ++processes) {
    in_processes(processes, [&](ProcessGroup& group) {
      Job job(program, group);
      for (int64_t number = 0; number < 4; ++number) job.train(number);
      job.drain();
      const DynamicTableMemory memory = job.table().memory();
      EXPECT_EQ(memory.rows, processes * job.table().shard().bytes());
      EXPECT_EQ(memory.sketch, processes * 4096 * 4);
      EXPECT_GT(memory.index, 0);
    });
  }
}

TEST(KeyedProcessesTest, CallsBetweenStepsConcernTheKeysOfAllProcesses) {
  in_processes(3, [](ProcessGroup& group) {
    Job job({.dynamic = {.capacity = 6, .eviction = Eviction::lru()}}, group);
    KeyedTable& table = job.table();
    const auto keys = [](const std::vector<int64_t>& some) {
      return key_tensor(some, KeyType::kInt64);
    };
    // Keys 0, 1, 42 and -1 are in the shards 904, 441, 31 and 0.
    table.assign_rows(keys({0, 1, 42, -1}), Tensor::from<float>({1, 1, 2, 2, 3, 3, 4, 4}, {4, 2}));
    EXPECT_THAT(table.keys().to_vector<int64_t>(), ElementsAre(-1, 0, 1, 42));
    EXPECT_THAT(table.contains(keys({42, 7, 0})), ElementsAre(1, 0, 1));
    EXPECT_THAT(table.read(0, keys({42, 0})).to_vector<float>(), ElementsAre(3, 3, 1, 1));
    EXPECT_THAT(message_of<ValueError>([&] { table.read(0, keys({1, 8, 7})); }),
                HasSubstr("no row for id 8"));
    EXPECT_EQ(table.info(keys({0})).owner, 2);
    EXPECT_TRUE(table.info(keys({0})).admitted);
    EXPECT_EQ(table.info(keys({1})).owner, 1);
    EXPECT_EQ(table.info(keys({42})).owner, 0);
    EXPECT_EQ(table.statistics().assigned, 4);
    const Tensor three = Tensor::from<float>({5, 5, 5, 5, 5, 5}, {3, 2});
    EXPECT_THAT(message_of<ValueError>([&] { table.assign_rows(keys({50, 51, 52}), three); }),
                HasSubstr("4 rows has no room for 3 more"));
    table.erase(keys({1, 99}));
    EXPECT_EQ(table.statistics().erased, 1);
    EXPECT_EQ(table.prune({.max_rows = 2}), 1);
    EXPECT_THAT(table.keys().to_vector<int64_t>(), ElementsAre(0, 42));
  });
}

}  // namespace keel::distribute::keyed_processes_test
