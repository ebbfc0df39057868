// OptimizerOptions::lazy_rows with several replicas, processes, workers and threads.
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/optimizers/adam.h>

#include "tests/distribute/fake_processes.h"
#include "tests/optimizers/step/lazy_rows.h"

namespace keel::lazy_rows_replicas_test {

using namespace lazy_rows_testing;  // NOLINT: what these tests are about
using distribute::FakeJob;
using distribute::ProcessGroup;
using distribute::TPUStrategy;
using testing::HasSubstr;

// Replicas in several processes, which are threads of this process, with lookups and reads between
// the steps.
Bits trained(ProcessGroup& group, const OptimizerHandle& optimizer, int hosts) {
  TPUStrategy strategy({.num_hosts = hosts, .num_cores = 1}, group);
  const auto scope = strategy.scope();
  const Variable t = table(), b = bias();
  t.set_path("layer/table");
  b.set_path("layer/bias");
  Bits out;
  for (int64_t step = 0; step < 20; ++step) {
    strategy.run([&] {
      const int64_t replica = current_replica_context()->replica;
      const Tensor ids = slices(t, 300 + step, replica).ids;
      if (step % 2 == 0) t.read_rows(ids);
      // Some replicas have no gradient of this variable.
      const bool none = replica == 2 && step % 4 == 1;
      optimizer->apply_gradients(
          {none ? Gradient() : slices(t, step, replica), bias_gradient(step + replica)}, {t, b});
    });
    if (step == 9) {
      for (const float x : bits(t)) out.push_back(x);
    }
  }
  for (const float x : state_of(*optimizer, t)) out.push_back(x);
  return out;
}

Bits trained_by(const std::function<OptimizerHandle()>& make, int processes, int hosts,
                int workers) {
  const int before = num_workers();
  set_num_workers(workers);
  FakeJob job(processes);
  std::vector<Bits> all(processes);
  const auto errors =
      job.run([&](ProcessGroup& group) { all[group.rank()] = trained(group, make(), hosts); });
  set_num_workers(before);
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (const Bits& other : all) EXPECT_EQ(other, all[0]);
  return all[0];
}

TEST(LazyRowsReplicasTest, ReplicasHaveTheBitsOfStepsOfAllRows) {
  for (size_t k = 0; k < all_kinds(LazyRows::kOff).size(); ++k) {
    const Bits expected = trained_by([&] { return all_kinds(LazyRows::kOff)[k]; }, 1, 4, 1);
    for (const int workers : {1, 3}) {
      expect_bits(trained_by([&] { return all_kinds(LazyRows::kReplay)[k]; }, 1, 4, workers),
                  expected, all_kinds(LazyRows::kOff)[k]->name());
    }
  }
}

TEST(LazyRowsReplicasTest, ProcessesHaveTheBitsOfStepsOfAllRows) {
  for (const size_t k : {0, 2, 3, 12}) {
    const auto lazily = [&] { return all_kinds(LazyRows::kReplay)[k]; };
    const Bits expected = trained_by([&] { return all_kinds(LazyRows::kOff)[k]; }, 1, 6, 2);
    expect_bits(trained_by(lazily, 1, 6, 2), expected, "1 process");
    expect_bits(trained_by(lazily, 2, 6, 1), expected, "2 processes");
    expect_bits(trained_by(lazily, 3, 6, 2), expected, "3 processes");
  }
}

// Each process reads other rows, and a read rounds the rows that it materializes.
TEST(LazyRowsReplicasTest, ProcessesRejectTheClosedForm) {
  FakeJob job(2);
  const auto errors = job.run([&](ProcessGroup& group) {
    trained(group, optimizers::Adam({.lazy_rows = LazyRows::kClosedForm}), 2);
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("closed_form"));
    EXPECT_THAT(error, HasSubstr("replay"));
  }
}

// Rows with steps missed before the last run of steps are mixed with other rows, in batches that
// depend on the number of workers.
TEST(LazyRowsReplicasTest, TheClosedFormHasTheSameBitsForAnyNumberOfWorkers) {
  const auto trained_by_workers = [](int workers) {
    const int before = num_workers();
    set_num_workers(workers);
    constexpr int64_t kMany = 4096;
    const OptimizerHandle adam = optimizers::Adam({.lazy_rows = LazyRows::kClosedForm});
    const Variable t = table(kMany), other = table();
    for (int64_t step = 0; step < 12; ++step) {
      std::vector<int64_t> ids;
      for (int64_t i = 0; i < kMany; ++i) {
        if (step < 3 || (step == 9 ? i % 211 != 0 : i % 97 == step)) ids.push_back(i);
      }
      const auto n = static_cast<int64_t>(ids.size());
      const Gradient of_t = IndexedSlices{.ids = Tensor::from(ids, {n}),
                                          .values = Tensor::full({n, kDim}, 0.5F),
                                          .dense_shape = t.shape()};
      const bool in_step = step != 4 && step != 8;
      adam->apply_gradients({in_step ? of_t : Gradient(), slices(other, step)}, {t, other});
    }
    std::vector<int64_t> third;
    for (int64_t i = 0; i < kMany; i += 3) third.push_back(i);
    const Tensor ids = Tensor::from(third, {static_cast<int64_t>(third.size())});
    const Bits out = ops::gather(t.read_rows(ids), ids).to_vector<float>();
    set_num_workers(before);
    return out;
  };
  expect_bits(trained_by_workers(3), trained_by_workers(1), "3 workers");
}

TEST(LazyRowsReplicasTest, ManyThreadsMayReadAtOnce) {
  const OptimizerHandle lazily = optimizers::Adam({.lazy_rows = LazyRows::kReplay});
  const OptimizerHandle densely = optimizers::Adam({});
  const Variable lazy = table(5000), dense = table(5000);
  for (int64_t step = 0; step < 400; ++step) {
    lazily->apply_gradients({slices(lazy, step)}, {lazy});
    densely->apply_gradients({slices(dense, step)}, {dense});
  }
  std::vector<int64_t> all(5000);
  for (int64_t i = 0; i < 5000; ++i) all[i] = (i * 37) % 5000;
  const Tensor ids = Tensor::from(all, {5000});
  std::vector<Bits> read(4);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        if (i % 2 == 0) lazy.read_rows(ids);
        read[i] = lazy.read().to_vector<float>();
      });
    }
  }
  for (const Bits& r : read) expect_bits(r, bits(dense), "thread");
}

}  // namespace keel::lazy_rows_replicas_test
