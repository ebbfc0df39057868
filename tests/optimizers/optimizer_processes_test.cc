// Optimizers in the replicas of several processes, which are threads of this process.
// Tests optimizers/step/slot_sharding.cc and step_agreement.cc.
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>

#include "tests/distribute/fake_processes.h"
#include "tests/support/tensors.h"

namespace keel::optimizer_processes_test {

using distribute::FakeJob;
using distribute::ProcessGroup;
using distribute::TPUStrategy;
using testing::HasSubstr;
using testing_support::append_values;
using Bits = std::vector<float>;

Variable variable(const std::string& path, int64_t rows, float value = 1) {
  Variable out(Tensor::full({rows, 5}, value), {.name = "kernel"});
  out.set_path(path);
  return out;
}

// A different gradient for each replica, step and variable.
Gradient dense_gradient(const Variable& v, int64_t step) {
  Tensor out = Tensor::zeros(v.shape());
  const auto values = out.mutable_data<float>();
  const auto seed = static_cast<float>(current_replica_context()->replica + 3 * step + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = seed / static_cast<float>(7 + i % 11) - 0.3F;
  }
  return out;
}

Gradient sparse_gradient(const Variable& v, int64_t step) {
  const int64_t replica = current_replica_context()->replica;
  const std::vector<int64_t> ids = {(replica + step) % v.shape()[0], 0, replica % 3, 0};
  return IndexedSlices{.ids = Tensor::from(ids, {4}),
                       .values = dense_gradient(Variable(Tensor::zeros({4, 5}), {}), step).dense(),
                       .dense_shape = v.shape()};
}

// Returns variables and slots after steps with changing lists of variables: dense, sparse, some
// omitted, with reads between the steps.
Bits trained(ProcessGroup& group, const OptimizerHandle& optimizer) {
  TPUStrategy strategy({.num_hosts = 6, .num_cores = 1}, group);
  const auto scope = strategy.scope();
  const std::vector<Variable> all = {variable("a", 37), variable("b", 3), variable("c", 20)};
  Bits out;
  for (int64_t step = 0; step < 8; ++step) {
    strategy.run([&] {
      std::vector<Gradient> gradients;
      for (size_t i = 0; i < all.size(); ++i) {
        const bool left_out = step % 3 == 2 && i == 0;
        const bool sparse = i == 2 && step % 2 == 1;
        gradients.push_back(left_out ? Gradient()
                            : sparse ? sparse_gradient(all[i], step)
                                     : dense_gradient(all[i], step));
      }
      optimizer->apply_gradients(gradients, all);
    });
    if (step == 4) append_values(optimizer->slots(all[0])[0], out);
  }
  for (const Variable& v : all) {
    append_values(v, out);
    for (const Variable& slot : optimizer->slots(v)) append_values(slot, out);
  }
  return out;
}

TEST(OptimizerProcessesTest, VariablesAndSlotsHaveTheBitsOfOneProcessInEach) {
  const auto make = [](bool adam) -> OptimizerHandle {
    if (adam) return optimizers::Adam({.learning_rate = 0.1});
    return optimizers::Adagrad({.learning_rate = 0.1});
  };
  for (const bool adam : {false, true}) {
    const Bits expected = trained(distribute::single_process(), make(adam));
    for (const int processes : {2, 3, 4}) {
      FakeJob job(processes);
      const auto errors = job.run([&](ProcessGroup& group) {
        EXPECT_TRUE(trained(group, make(adam)) == expected)
            << "rank " << group.rank() << " of " << processes << (adam ? ", Adam" : ", Adagrad");
      });
      EXPECT_EQ(errors, std::vector<std::string>(processes));
    }
  }
}

std::string error_of_step(const std::function<std::vector<Variable>(int rank)>& variables) {
  FakeJob job(2);
  const auto errors = job.run([&](ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 1}, group);
    const OptimizerHandle optimizer = optimizers::Adam({});
    const std::vector<Variable> mine = variables(group.rank());
    strategy.run([&] {
      std::vector<Gradient> gradients;
      for (const Variable& v : mine) gradients.push_back(dense_gradient(v, 0));
      optimizer->apply_gradients(gradients, mine);
    });
  });
  EXPECT_EQ(errors[0].empty(), errors[1].empty()) << errors[0] << errors[1];
  return errors[0] + errors[1];
}

TEST(OptimizerProcessesTest, NumbersInNamesMayDifferBetweenProcesses) {
  EXPECT_EQ(error_of_step([](int rank) {
              return std::vector{variable(str("dense_", 7 + 5 * rank, "/kernel"), 4)};
            }),
            "");
}

TEST(OptimizerProcessesTest, OtherVariablesInAnotherProcessAreAnErrorInAll) {
  const std::string differ = "lists of variables differ";
  EXPECT_THAT(
      error_of_step([](int rank) { return std::vector{variable(rank == 0 ? "a" : "b", 4)}; }),
      HasSubstr(differ));
  EXPECT_THAT(error_of_step([](int rank) { return std::vector{variable("a", 4 + rank)}; }),
              HasSubstr(differ));
  EXPECT_THAT(error_of_step([](int rank) {
                std::vector<Variable> out = {variable("a", 4)};
                if (rank == 1) out.push_back(variable("b", 4));
                return out;
              }),
              HasSubstr(differ));
}

TEST(OptimizerProcessesTest, OtherRatesOrNumbersOfCallsInAnotherProcessAreAnErrorInAll) {
  const auto errors_of = [](const auto& optimizer_of) {
    FakeJob job(2);
    return job.run([&](ProcessGroup& group) {
      TPUStrategy strategy({.num_hosts = 4, .num_cores = 1}, group);
      const auto scope = strategy.scope();
      const OptimizerHandle optimizer = optimizer_of(group.rank());
      const Variable v = variable("a", 4);
      strategy.run([&] { optimizer->apply_gradients({dense_gradient(v, 0)}, {v}); });
    });
  };
  const auto rates = errors_of([](int rank) -> OptimizerHandle {
    return optimizers::Adam({.learning_rate = rank == 0 ? 0.25 : 0.5});
  });
  const auto calls = errors_of([](int rank) -> OptimizerHandle {
    const optimizers::Adam out({});
    out->set_iterations(3 * rank);
    return out;
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_THAT(rates[rank], HasSubstr("the learning rate is 0.25 in rank 0 and 0.5 in rank 1"));
    EXPECT_THAT(calls[rank], HasSubstr("the number of calls is 0 in rank 0 and 3 in rank 1"));
  }
}

TEST(OptimizerProcessesTest, AVariableThatStartsFromOtherValuesElsewhereIsAnErrorInAll) {
  EXPECT_THAT(error_of_step([](int rank) {
                return std::vector{variable("dense/kernel", 4, static_cast<float>(rank))};
              }),
              HasSubstr("dense/kernel differs between processes"));
}

}  // namespace keel::optimizer_processes_test
