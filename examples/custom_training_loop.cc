// A hand-written training loop with one optimizer for the embedding tables and another one for the
// dense layers. The same step runs under both strategies: pass --strategy cpu or tpu.
#include <algorithm>
#include <iostream>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/training/model.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>

#include "examples/program.h"

namespace keel::examples {
namespace {

struct Flags {
  std::string strategy = "tpu";
  int cores = 4;
  int64_t steps = 60;
};

Flags flags;

constexpr int64_t kGlobalBatch = 64;

class Ranker final : public Model {
 public:
  explicit Ranker(const OptimizerHandle& embedding_optimizer)
      : Model("Ranker"),
        embedding_(track(layers::TPUEmbedding(
            {.feature_config =
                 FeatureConfig{.table = make_table({.vocabulary_size = 100, .dim = 16})},
             .optimizer = embedding_optimizer}))) {}

  const layers::TPUEmbedding& embedding() const { return embedding_; }

 private:
  Tensors call(const Tensors& history, const CallContext&) override {
    return score_(hidden_(embedding_(history).tensor()));
  }

  layers::TPUEmbedding embedding_;
  layers::Dense hidden_ = track(layers::Dense({.units = 32, .activation = "relu"}));
  layers::Dense score_ = track(layers::Dense({.units = 1, .activation = "sigmoid"}));
};

// Histories of one to five items. Histories that start with an even item end in a click.
Tensors read_batch(int64_t step, int64_t rows, int64_t first_row) {
  std::vector<std::vector<int64_t>> history;
  std::vector<float> clicks;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    const int64_t number = step * kGlobalBatch + row;
    std::vector<int64_t> items;
    for (int64_t i = 0; i <= number % 5; ++i) items.push_back((number * 37 + i * 2) % 100);
    clicks.push_back(items[0] % 2 == 0 ? 1.0F : 0.0F);
    history.push_back(std::move(items));
  }
  return Tensors::tuple({RaggedTensor::from_rows(history), Tensor::from(clicks, {rows, 1})});
}

int run() {
  const auto strategy = distribute::make_strategy(flags.strategy, {.num_cores = flags.cores});
  const auto scope = strategy->scope();
  const OptimizerHandle embedding_optimizer = optimizers::Adagrad({.learning_rate = 0.5});
  const OptimizerHandle dense_optimizer = optimizers::Adam({.learning_rate = 0.01});
  const auto model = make_layer<Ranker>(embedding_optimizer);

  const auto train_step = [&](const Tensors& batch) {
    GradientTape tape;
    const Tensor prediction = model(batch[0], {.training = true}).tensor();
    Tensor loss =
        ops::sum(losses::binary_crossentropy(batch[1].tensor(), prediction)) / kGlobalBatch;
    // Under a TPUStrategy, one of these variables is virtual: computing its gradient updates the
    // tables.
    const std::vector<Variable> variables = model->trainable_variables();
    const std::vector<Gradient> gradients = tape.gradient(loss, variables);
    const std::vector<Variable> tables = model->embedding()->trainable_variables();
    std::vector<Variable> of_tables, of_dense;
    std::vector<Gradient> table_gradients, dense_gradients;
    for (size_t i = 0; i < variables.size(); ++i) {
      const bool is_table = std::ranges::find(tables, variables[i]) != tables.end();
      (is_table ? of_tables : of_dense).push_back(variables[i]);
      (is_table ? table_gradients : dense_gradients).push_back(gradients[i]);
    }
    embedding_optimizer->apply_gradients(table_gradients, of_tables);
    dense_optimizer->apply_gradients(dense_gradients, of_dense);
    return loss;
  };

  const int replicas = strategy->num_replicas_in_sync();
  if (kGlobalBatch % replicas != 0) {
    throw ValueError("--cores must divide the batch of ", kGlobalBatch, ", received ", replicas);
  }
  for (int64_t step = 0; step < flags.steps; ++step) {
    const auto batches = strategy->distribute_values_from_function([&](int replica) {
      const int64_t rows = kGlobalBatch / replicas;
      return read_batch(step, rows, replica * rows);
    });
    const auto losses = strategy->run(train_step, batches);
    if (step % 10 == 0) {
      const Tensor loss = strategy->reduce(distribute::ReduceOp::kSum, losses);
      std::cout << "step " << step << " loss " << loss.item<float>() << '\n';
    }
  }
  return 0;
}

}  // namespace
}  // namespace keel::examples

int main(int argc, char** argv) {
  using keel::examples::flags;
  keel::tool::CommandLine line(
      "custom_training_loop",
      "custom_training_loop: trains a ranker with a loop and two optimizers.");
  line.option("--strategy", &flags.strategy, "cpu or tpu");
  line.option("--cores", &flags.cores, "replicas of the tpu strategy");
  line.option("--steps", &flags.steps, "training steps");
  return keel::examples::run_program(line, argc, argv, keel::examples::run);
}
