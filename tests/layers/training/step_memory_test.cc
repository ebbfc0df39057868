// Memory of training steps: in the steady state they allocate nothing from the system.
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/optimizers/adagrad.h>

namespace keel::step_memory_test {

#if !defined(KEEL_ADDRESS_SANITIZER)  // under it every tensor is a separate block

class StepMemoryTest : public testing::TestWithParam<bool> {};

TEST_P(StepMemoryTest, ASteadyTrainingStepAllocatesNoTensorMemory) {
  // With several workers, the number of blocks that a loop uses at a time varies between runs.
  const int workers = num_workers();
  set_num_workers(1);
  distribute::TPUStrategy tpu({.num_cores = 2});
  distribute::CPUStrategy cpu;
  distribute::Strategy& strategy = GetParam() ? static_cast<distribute::Strategy&>(tpu) : cpu;
  const auto scope = strategy.scope();
  const optimizers::Adagrad optimizer({.learning_rate = 0.1});
  const Tensor input = layers::input({.dtype = DType::kInt64, .name = "id"});
  const layers::TPUEmbedding embedding(
      {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = 1000, .dim = 16})},
       .optimizer = optimizer});
  Tensor x = embedding(input);
  x = layers::Dense({.units = 64, .activation = "relu"})(x);
  const Functional model({.inputs = input, .outputs = layers::Dense({.units = 1})(x)});
  model->compile({.optimizer = optimizer, .loss = "mean_squared_error"});

  const auto step = [&](int64_t number) {
    std::vector<int64_t> ids(256);
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<int64_t>(i * 31 + number * 17) % 1000;
    }
    model->train_on_batch(Tensors(Tensor::from(ids, {256})),
                          Tensors(Tensor::full<float>({256, 1}, 1)));
  };
  for (int64_t number = 0; number < 20; ++number) step(number);
  const size_t before = allocator_stats().system_calls;
  for (int64_t number = 20; number < 420; ++number) step(number);
  set_num_workers(workers);
  // Replicas that happen to overlap more than before may need additional blocks.
  const size_t allowed = GetParam() ? 8 : 0;
  EXPECT_LE(allocator_stats().system_calls - before, allowed) << "in 400 steps";
}

INSTANTIATE_TEST_SUITE_P(Strategies, StepMemoryTest, testing::Bool(),
                         [](const auto& test) { return test.param ? "Tpu" : "Cpu"; });

#endif

}  // namespace keel::step_memory_test
