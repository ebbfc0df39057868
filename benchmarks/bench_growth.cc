// How the time of a training step grows with the vocabulary: what is left is cache misses.
//
// One table of 16 columns, a global batch of 2048 rows with 10 random ids each, mean pooling; the
// step is lookup, gradient and update. Prints the median over the steps for each vocabulary, and
// the ratio of the largest to the smallest.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iomanip>
#include <iostream>

#include "autodiff/ops.h"
#include "autodiff/replica_context.h"
#include "autodiff/tape.h"
#include "distribute/tpu_strategy.h"
#include "framework/random.h"
#include "layers/embedding/tpu_embedding.h"
#include "optimizers/adagrad.h"
#include "optimizers/sgd.h"

namespace keel {
namespace {

constexpr int64_t kDim = 16;
constexpr int64_t kRows = 2048;
constexpr int64_t kBag = 10;
constexpr int kWarmUpSteps = 3;

struct Case {
  const char* strategy;
  const char* optimizer;
};

OptimizerHandle make_optimizer(const std::string& name) {
  if (name == "sgd") return optimizers::SGD({.learning_rate = 0.01});
  return optimizers::Adagrad({.learning_rate = 0.01});
}

Tensors random_bags(int64_t vocabulary, int64_t rows, uint64_t step) {
  std::vector<int64_t> ids(rows * kBag);
  RandomStream{.seed = 1, .purpose = step}.uniform_int(ids, 0, vocabulary);
  std::vector<int64_t> splits(rows + 1);
  for (int64_t row = 0; row <= rows; ++row) splits[row] = row * kBag;
  return RaggedTensor{Tensor::from(ids, {rows * kBag}), Tensor::from(splits, {rows + 1})};
}

// Median milliseconds of a step.
double time_steps(const Case& c, int64_t vocabulary, int steps) {
  const auto strategy = distribute::make_strategy(c.strategy, {.num_cores = 4});
  const auto scope = strategy->scope();
  const OptimizerHandle optimizer = make_optimizer(c.optimizer);
  const layers::TPUEmbedding layer(
      {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = vocabulary,
                                                            .dim = kDim,
                                                            .initializer = "random_uniform"})},
       .optimizer = optimizer});
  layer->build(Specs(TensorSpec{
      .shape = {kUnknown, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}));
  const int replicas = strategy->num_replicas_in_sync();
  std::vector<double> times;
  for (int step = 0; step < kWarmUpSteps + steps; ++step) {
    const auto batches = strategy->distribute_values_from_function([&](int replica) {
      return random_bags(vocabulary, kRows / replicas, step * 100 + replica);
    });
    const auto begin = std::chrono::steady_clock::now();
    strategy->run(
        [&](const Tensors& batch) {
          GradientTape tape;
          const Tensor loss = ops::sum(layer(batch).tensor()) / static_cast<double>(kRows);
          const auto variables = layer->trainable_variables();
          optimizer->apply_gradients(tape.gradient(loss, variables), variables);
        },
        batches);
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    if (step >= kWarmUpSteps) times.push_back(time.count());
  }
  std::ranges::nth_element(times, times.begin() + static_cast<int64_t>(times.size()) / 2);
  return times[times.size() / 2];
}

int run(bool quick, bool json) {
  const std::vector<int64_t> vocabularies = {100'000, 1'000'000, 10'000'000};
  const int steps = quick ? 30 : 200;
  std::cout << std::fixed << std::setprecision(3);
  if (json) {
    std::cout << "{\"results\": [";
  } else {
    std::cout << "step time, ms, by vocabulary (dim " << kDim << ", " << kRows << " rows of "
              << kBag << " ids)\nstrategy  optimizer      1e5      1e6      1e7   1e7/1e5\n";
  }
  bool first = true;
  for (const Case& c :
       {Case{"cpu", "sgd"}, Case{"cpu", "adagrad"}, Case{"tpu", "sgd"}, Case{"tpu", "adagrad"}}) {
    std::vector<double> times;
    for (int64_t vocabulary : vocabularies) times.push_back(time_steps(c, vocabulary, steps));
    const double ratio = times.back() / times.front();
    if (json) {
      std::cout << (first ? "" : ", ") << "{\"op\": \"embedding_step\", \"strategy\": \""
                << c.strategy << "\", \"optimizer\": \"" << c.optimizer << "\", \"dim\": " << kDim
                << ", \"unit\": \"ms\", \"value\": [" << times[0] << ", " << times[1] << ", "
                << times[2] << "], \"ratio_1e7_to_1e5\": " << ratio << "}";
    } else {
      std::cout << std::left << std::setw(10) << c.strategy << std::setw(9) << c.optimizer
                << std::right << std::setw(9) << times[0] << std::setw(9) << times[1]
                << std::setw(9) << times[2] << std::setw(9) << ratio << "x\n";
    }
    first = false;
  }
  if (json) std::cout << "]}\n";
  return 0;
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  bool quick = false;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0) {
      quick = true;
    } else if (std::strcmp(argv[i], "--json") == 0) {
      json = true;
    } else {
      std::cerr << "usage: bench_growth [--quick] [--json]\n";
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    }
  }
  return keel::run(quick, json);
}
