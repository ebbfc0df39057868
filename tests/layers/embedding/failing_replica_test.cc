// A failure in one replica raises an error in all replicas at once. The strategy and the layer
// remain usable.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::failing_replica_test {

using testing::HasSubstr;
using testing_support::message_if_any;

// The fault of the last replica.
enum class Fault {
  kThrowsBeforeTheLookup,
  kThrowsBetweenLookupAndGradient,
  kThrowsInABackwardFunction,
  kThrowsBeforeApplyingGradients,
  kLeavesOutTheLookup,
  kLeavesOutTheGradient,
  kLooksUpTwice,
  kAppliesDenseGradientsAlone,
  kHasAnIdOutsideItsTable,
};

struct Case {
  Fault fault;
  int cores;
  bool pipelined;
};

class FailingReplicaTest : public testing::TestWithParam<Case> {
 protected:
  bool here(Fault fault) const {
    return GetParam().fault == fault && broken_ &&
           current_replica_context()->replica == GetParam().cores - 1;
  }
  void step() {
    strategy_.run([&] {
      GradientTape tape;
      if (here(Fault::kThrowsBeforeTheLookup)) throw IoError("planned");
      const int64_t id = here(Fault::kHasAnIdOutsideItsTable) ? 99 : 2;
      Tensor found = Tensor::zeros({1, 1});
      if (!here(Fault::kLeavesOutTheLookup)) {
        found = layer_(Tensor::from<int64_t>({id}, {1}));
      }
      if (here(Fault::kLooksUpTwice)) layer_(Tensor::from<int64_t>({1}, {1}));
      if (here(Fault::kThrowsBetweenLookupAndGradient)) throw IoError("planned");
      const bool throws_backward = here(Fault::kThrowsInABackwardFunction);
      found = custom_gradient({found}, [&] {
        return WithBackward{{found.aliased()}, [=](std::span<const Gradient> dy) {
                              if (throws_backward) throw IoError("planned");
                              return std::vector<Gradient>{dy[0]};
                            }};
      })[0];
      const Variable kernel = kernel_;
      const Tensor loss = ops::sum(found * kernel.read());
      std::vector<Variable> variables = layer_->trainable_variables();
      variables.push_back(kernel);
      if (here(Fault::kLeavesOutTheGradient)) variables = {kernel};
      if (here(Fault::kAppliesDenseGradientsAlone)) {
        dense_->apply_gradients({Gradient(Tensor::zeros({1}))}, {kernel});
      }
      const std::vector<Gradient> gradients = tape.gradient(loss, variables);
      if (here(Fault::kThrowsBeforeApplyingGradients)) throw IoError("planned");
      dense_->apply_gradients({gradients.back()}, {kernel});
    });
  }

  distribute::TPUStrategy strategy_{{.num_cores = GetParam().cores}};
  const distribute::Strategy::Scope scope_ = strategy_.scope();
  const OptimizerHandle dense_ = optimizers::SGD({.learning_rate = 0.0});
  const Variable kernel_{Tensor::full<float>({1}, 1), {.name = "kernel"}};
  const layers::TPUEmbedding layer_{
      {.feature_config =
           FeatureConfig{.table =
                             make_table({.vocabulary_size = 5, .dim = 1, .initializer = "zeros"})},
       .optimizer = tpu::SGD{.learning_rate = 1.0},
       .pipeline_execution_with_tensor_core = GetParam().pipelined}};
  bool broken_ = false;
};

TEST_P(FailingReplicaTest, FailsWithinASecondAndTheNextStepIsCorrect) {
  step();
  broken_ = true;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(step(), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  broken_ = false;
  const float before = layer_->embedding_tables()[0].second.to_vector<float>()[2];
  step();
  // Each replica's gradient is 1, and the rate is 1.
  const float after = layer_->embedding_tables()[0].second.to_vector<float>()[2];
  EXPECT_EQ(after, before - static_cast<float>(GetParam().cores));
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (int fault = 0; fault <= static_cast<int>(Fault::kHasAnIdOutsideItsTable); ++fault) {
    for (int cores : {2, 4}) {
      for (bool pipelined : {false, true}) {
        out.push_back({static_cast<Fault>(fault), cores, pipelined});
      }
    }
  }
  return out;
}

// An op that returns its input, and a given gradient of any shape and dtype.
class Careless final : public Op {
 public:
  explicit Careless(Tensor gradient) : Op("Careless"), gradient_(std::move(gradient)) {}
  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override { return {in[0]}; }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    return {in[0].aliased()};
  }
  std::vector<Gradient> vjp(const VjpArgs&) const override { return {gradient_}; }

 private:
  const Tensor gradient_;
};

TEST(UnfitGradientTest, IsAnErrorThatNamesItsOpAndChangesNoRow) {
  for (const bool pipelined : {false, true}) {
    distribute::TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const layers::TPUEmbedding layer(
        {.feature_config = {{"x", FeatureConfig{.table = make_table({.vocabulary_size = 64,
                                                                     .dim = 2,
                                                                     .initializer = "zeros"})}}},
         .optimizer = tpu::SGD{.learning_rate = 1.0},
         .pipeline_execution_with_tensor_core = pipelined});
    const auto error_of = [&](const Tensor& gradient) -> std::string {
      return message_if_any<Error>([&] {
        strategy.run([&] {
          GradientTape tape;
          const Tensor ids = Tensor::from<int64_t>({1, 2, 3, 4}, {4});
          const Tensor found = layer(Tensors::Dict{{"x", ids}})["x"].tensor();
          const Tensor loss = ops::sum(dispatch1(Careless(gradient), {found}));
          tape.gradient(loss, layer->trainable_variables());
        });
      });
    };
    for (const Tensor& wrong : {Tensor::full<float>({}, 1), Tensor::full<float>({1, 2}, 1),
                                Tensor::full<float>({2, 4}, 1), Tensor::full<float>({8, 2}, 1),
                                Tensor::full<double>({4, 2}, 1)}) {
      EXPECT_THAT(error_of(wrong), HasSubstr("the gradient that Careless returns for input 0 must"))
          << wrong.shape();
    }
    const auto rows = [&] { return layer->embedding_tables()[0].second.to_vector<float>(); };
    EXPECT_EQ(rows(), std::vector<float>(128, 0));
    EXPECT_EQ(error_of(Tensor::full<float>({4, 2}, 1)), "");
    EXPECT_EQ(rows()[2], -1);
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingReplicaTest, testing::ValuesIn(cases()));

}  // namespace keel::failing_replica_test
