#include "benchmarks/embedding/engine_table.h"

#include <sys/prctl.h>

#include <keel/autodiff/replica_context.h>
#include <keel/framework/kernels/update_rules/basic_update_rules.h>

namespace keel::bench {
namespace {

using distribute::Communicator;
using distribute::EmbeddingEngine;
using distribute::FeatureBatch;

// Prevents the engine from requesting huge pages while this object exists.
class SmallPages {
 public:
  explicit SmallPages(bool wanted) : wanted_(wanted) {
    if (wanted_) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  }
  ~SmallPages() {
    if (wanted_) prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
  }
  SmallPages(const SmallPages&) = delete;
  SmallPages& operator=(const SmallPages&) = delete;

 private:
  const bool wanted_;
};

std::shared_ptr<const UpdateRule> rule_of(std::optional<SparseOptimizer> optimizer) {
  if (!optimizer) return nullptr;
  switch (*optimizer) {
    case SparseOptimizer::kSgd:
      return std::make_shared<SGDRule>();
    case SparseOptimizer::kAdagrad:
      return std::make_shared<AdagradRule>(kAdagradStart, 0.0);
    case SparseOptimizer::kAdam:
      return std::make_shared<AdamRule>(AdamRuleOptions{.beta_1 = kAdamBeta1,
                                                        .beta_2 = kAdamBeta2,
                                                        .epsilon = kAdamEpsilon,
                                                        .bias_correction = false});
    case SparseOptimizer::kFtrl:
      return std::make_shared<FtrlRule>(FtrlRuleOptions{.initial_accumulator_value = kFtrlStart});
  }
  return nullptr;
}

template <class T>
Tensor slice(const std::vector<T>& values, int64_t begin, int64_t end) {
  return Tensor::from(std::span(values).subspan(begin, end - begin), {end - begin});
}

// Returns samples [begin, end) of a batch.
FeatureBatch part_of(const BagBatch& batch, const std::vector<float>& weights, int64_t begin,
                     int64_t end) {
  const int64_t first = batch.splits[begin];
  const int64_t last = batch.splits[end];
  std::vector<int64_t> splits;
  for (int64_t sample = begin; sample <= end; ++sample) {
    splits.push_back(batch.splits[sample] - first);
  }
  return {.ids = slice(batch.ids, first, last),
          .row_splits = Tensor::from(splits, {end - begin + 1}),
          .weights = weights.empty() ? Tensor() : slice(weights, first, last)};
}

}  // namespace

EngineTable::EngineTable(const Options& options)
    : options_(options), alone_(distribute::make_self_communicator()) {
  const SmallPages pages(options.pages == Pages::kSmall);
  if (options.threads > 1) {
    strategy_ = std::make_unique<distribute::TPUStrategy>(
        distribute::TPUStrategyOptions{.num_cores = options.threads});
  }
  distribute::EngineConfiguration configuration;
  configuration.num_tensor_cores = options.threads;
  configuration.tables.push_back({.name = "table",
                                  .rows = options.rows,
                                  .dim = options.dim,
                                  .combiner = options.combiner,
                                  .num_features = 1,
                                  .update = {.rule = rule_of(options.optimizer)},
                                  .learning_rate = options.learning_rate});
  configuration.features.push_back({.name = "feature", .table_id = 0});
  engine_ = std::make_unique<EmbeddingEngine>(configuration);
}

void EngineTable::load(const float* weights) {
  const SmallPages pages(options_.pages == Pages::kSmall);
  engine_->write_rows(0, 0, 0, options_.rows, weights);
}

void EngineTable::read_row(int64_t row, float* out) const {
  engine_->read_rows(0, 0, row, row + 1, out);
}

void EngineTable::set_batches(const std::vector<BagBatch>& batches,
                              const std::vector<float>& weights) {
  batches_.clear();
  at_ = 0;
  for (const BagBatch& batch : batches) {
    Replicas replicas;
    for (int64_t r = 0; r < options_.threads; ++r) {
      replicas.push_back(part_of(batch, weights, batch.samples() * r / options_.threads,
                                 batch.samples() * (r + 1) / options_.threads));
    }
    batches_.push_back(std::move(replicas));
  }
}

void EngineTable::set_gradient(const float* gradient, int64_t samples) {
  gradients_.clear();
  for (int64_t r = 0; r < options_.threads; ++r) {
    const int64_t begin = samples * r / options_.threads;
    const int64_t end = samples * (r + 1) / options_.threads;
    gradients_.push_back(
        Tensor::from(std::span(gradient + begin * options_.dim, (end - begin) * options_.dim),
                     {end - begin, options_.dim}));
  }
}

void EngineTable::run(const std::function<void(Communicator&, int)>& body) {
  if (strategy_ == nullptr) return body(*alone_, 0);
  strategy_->run([&] { body(strategy_->communicator(), current_replica_context()->replica); });
}

const EngineTable::Replicas& EngineTable::next_batch() {
  const Replicas& batch = batches_[at_];
  at_ = (at_ + 1) % batches_.size();
  return batch;
}

void EngineTable::lookup() {
  const Replicas& batch = next_batch();
  pooled_.resize(options_.threads);
  run([&](Communicator& communicator, int replica) {
    pooled_[replica] =
        engine_->lookup(communicator, {batch[replica]}, /*training=*/false).values[0];
  });
}

void EngineTable::step() {
  const Replicas& batch = next_batch();
  run([&](Communicator& communicator, int replica) {
    auto found = engine_->lookup(communicator, {batch[replica]});
    engine_->apply(communicator, std::move(found.ticket), {gradients_[replica]},
                   {{.learning_rate = options_.learning_rate, .iteration = iteration_}});
  });
  ++iteration_;
}

std::vector<float> EngineTable::looked_up() const {
  std::vector<float> out;
  for (const Tensor& part : pooled_) {
    const auto values = part.data<float>();
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

}  // namespace keel::bench
