#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "benchmarks/growth/steps.h"

namespace keel::bench {
namespace {

OptimizerHandle make_optimizer(distribute::Strategy& strategy, const std::string& name) {
  const auto scope = strategy.scope();
  if (name == "sgd") return optimizers::SGD({.learning_rate = kGrowthRate});
  if (name == "adagrad") return optimizers::Adagrad({.learning_rate = kGrowthRate});
  if (name == "adam") return optimizers::Adam({.learning_rate = kGrowthRate});
  if (name == "ftrl") return optimizers::Ftrl({.learning_rate = kGrowthRate});
  if (name == "adam_lazy_rows") {
    return optimizers::Adam({.learning_rate = kGrowthRate, .lazy_rows = LazyRows::kClosedForm});
  }
  if (name == "ftrl_lazy_rows") {
    return optimizers::Ftrl({.learning_rate = kGrowthRate, .lazy_rows = LazyRows::kClosedForm});
  }
  if (name == "adam_replayed") {
    return optimizers::Adam({.learning_rate = kGrowthRate, .lazy_rows = LazyRows::kReplay});
  }
  throw ValueError("bench_growth: no optimizer '", name, "'");
}

// Samples [begin, end).
Tensors bags_of(const BagBatch& all, int64_t begin, int64_t end) {
  const std::vector<int64_t> ids(all.ids.begin() + all.splits[begin],
                                 all.ids.begin() + all.splits[end]);
  std::vector<int64_t> splits;
  for (int64_t s = begin; s <= end; ++s) splits.push_back(all.splits[s] - all.splits[begin]);
  return RaggedTensor{Tensor::from(ids, {static_cast<int64_t>(ids.size())}),
                      Tensor::from(splits, {end - begin + 1})};
}

// Steps of one layer with its tables.
class OwnSteps final : public GrowthSteps {
 public:
  explicit OwnSteps(const GrowthSetting& setting)
      : setting_(setting),
        strategy_(distribute::make_strategy(setting.strategy, {.num_cores = setting.replicas})),
        optimizer_(make_optimizer(*strategy_, setting.optimizer)),
        layer_(make_layer()),
        source_(setting) {
    warm_up(source_.ids());
  }

 private:
  void draw(int batches) override {
    batches_.clear();
    for (int i = 0; i < batches; ++i) batches_.push_back(draw_batch());
  }

  void step_on(int batch) override {
    strategy_->run(
        [this](const Tensors& part) {
          GradientTape tape;
          std::vector<Tensor> sums;
          for (const TensorLike& found : flatten(layer_(part))) {
            sums.push_back(ops::sum(found.tensor()));
          }
          const Tensor loss = ops::sum(ops::stack(sums)) / static_cast<double>(setting_.samples);
          const auto variables = layer_->trainable_variables();
          optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
        },
        batches_.at(batch));
  }

  distribute::PerReplica<Tensors> draw_batch() {
    const std::vector<BagBatch> bags = source_.draw();
    const int replicas = strategy_->num_replicas_in_sync();
    return strategy_->distribute_values_from_function([&](int replica) {
      Tensors::Items features;
      for (const BagBatch& of_table : bags) {
        features.push_back(bags_of(of_table, setting_.samples * replica / replicas,
                                   setting_.samples * (replica + 1) / replicas));
      }
      return Tensors::list(std::move(features));
    });
  }

  layers::TPUEmbedding make_layer() const {
    const auto scope = strategy_->scope();
    Nest<FeatureConfig>::Items features;
    for (int t = 0; t < setting_.tables; ++t) {
      features.push_back(FeatureConfig{.table = make_table({.vocabulary_size = setting_.vocabulary,
                                                            .dim = kGrowthDim,
                                                            .initializer = "random_uniform",
                                                            .combiner = "sum"})});
    }
    layers::TPUEmbedding layer(
        {.feature_config = Nest<FeatureConfig>::list(std::move(features)),
         // If tables are variables, apply_gradients does the whole update.
         .optimizer = strategy_->is_tpu() ? EmbeddingOptimizer(optimizer_) : EmbeddingOptimizer()});
    Specs::Items specs(setting_.tables, TensorSpec{.shape = {kUnknown, kUnknown},
                                                   .dtype = DType::kInt64,
                                                   .layout = Layout::kRagged});
    layer->build(Specs::list(std::move(specs)));
    return layer;
  }

  const GrowthSetting setting_;
  const std::unique_ptr<distribute::Strategy> strategy_;
  const OptimizerHandle optimizer_;
  const layers::TPUEmbedding layer_;
  GrowthBatches source_;
  std::vector<distribute::PerReplica<Tensors>> batches_;
};

}  // namespace

std::unique_ptr<GrowthSteps> make_growth_steps(const GrowthSetting& setting) {
  return std::make_unique<OwnSteps>(setting);
}

}  // namespace keel::bench
