#include <keel/layers/internal/replica_sum.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>

namespace keel::replica_sum_test {

TEST(ReplicaSumTest, ReturnsItsArgumentOutsideOfReplicas) {
  EXPECT_FALSE(in_several_replicas());
  const Tensor x = Tensor::from<float>({1, 2}, {2});
  EXPECT_EQ(replica_sum(x).to_vector<float>(), x.to_vector<float>());
}

// Replica r passes r + 1 and weighs the sum by r + 1, so that each gradient is 1 + 2 + 3.
template <class T>
void expect_sums() {
  distribute::TPUStrategy strategy({.num_cores = 3});
  const auto scope = strategy.scope();
  const auto inputs = strategy.distribute_values_from_function(
      [](int r) { return Tensor::full<T>({2}, static_cast<T>(r + 1)); });
  const auto results = strategy.run(
      [](const Tensor& x) {
        GradientTape tape;
        tape.watch(x);
        const Tensor sum = replica_sum(x);
        const Tensor gradient = tape.input_gradient(sum * x, {x})[0].dense();
        return std::vector<Tensor>{sum, gradient};
      },
      inputs);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(results[r][0].template to_vector<T>(), (std::vector<T>{6, 6}));
    const T expected = 6 + 6;  // of the factor x, and through the sum
    EXPECT_EQ(results[r][1].template to_vector<T>(), (std::vector<T>{expected, expected}));
  }
}

TEST(ReplicaSumTest, SumsValuesAndGradientsOverTheReplicas) {
  expect_sums<float>();
  expect_sums<double>();
}

}  // namespace keel::replica_sum_test
