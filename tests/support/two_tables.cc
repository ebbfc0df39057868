#include "tests/support/two_tables.h"

#include <numeric>
#include <ostream>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/support/expectations.h"

namespace keel::two_tables {
namespace {

constexpr int64_t kSamples = 4;

std::unique_ptr<distribute::Strategy> strategy_of(const Holder& h) {
  if (h.cpu) return std::make_unique<distribute::CPUStrategy>();
  return std::make_unique<distribute::TPUStrategy>(
      distribute::TPUStrategyOptions{.num_hosts = h.hosts, .num_cores = h.cores});
}

// Features 0 and 1 look up table 0 (6 x 3, sum), feature 2 table 1 (4 x 2, sum).
const std::vector<std::vector<int64_t>> kIds[3] = {
    {{0, 1}, {1}, {}, {5, 5, 2}}, {{3}, {0}, {0, 4}, {1}}, {{0}, {1, 2}, {2}, {0, 1}}};
int table_of(int feature) { return feature / 2; }
// The gradient of an activation.
double gradient_of(int feature, int64_t sample, int64_t d) {
  return 0.5 * static_cast<double>(sample + 1) + 0.25 * static_cast<double>(d) - 0.75 * feature;
}
double start_of(int64_t row, int64_t d) { return 0.3 * static_cast<double>(row + 1) - 0.2 * d; }

std::vector<double> flat(const std::vector<Row>& rows) {
  std::vector<double> out;
  for (const Row& row : rows) out.insert(out.end(), row.begin(), row.end());
  return out;
}

Tensors batch(int64_t begin, int64_t end) {
  Tensors::Items out;
  for (const auto& rows : kIds) {
    out.push_back(RaggedTensor::from_rows(
        std::vector<std::vector<int64_t>>(rows.begin() + begin, rows.begin() + end)));
  }
  return Tensors::list(std::move(out));
}

// The gradients of the activations.
Tensor factors(int f, int64_t begin, int64_t end) {
  std::vector<float> out;
  for (int64_t s = begin; s < end; ++s) {
    for (int64_t d = 0; d < kDims[table_of(f)]; ++d) {
      out.push_back(static_cast<float>(gradient_of(f, s, d)));
    }
  }
  return Tensor::from(out, {end - begin, kDims[table_of(f)]});
}

}  // namespace

void PrintTo(const Holder& h, std::ostream* out) {
  *out << (h.cpu ? "cpu" : h.engine ? "engine" : "v0") << " " << h.hosts << "x" << h.cores;
}

Tables starting_tables() {
  Tables out(2);
  for (int t = 0; t < 2; ++t) {
    for (int64_t r = 0; r < kRows[t]; ++r) {
      Row& row = out[t].emplace_back();
      for (int64_t d = 0; d < kDims[t]; ++d) row.push_back(start_of(r, d));
    }
  }
  return out;
}

std::vector<Rows> gradients() {
  std::vector<Rows> out(2);
  for (int f = 0; f < 3; ++f) {
    for (int64_t s = 0; s < kSamples; ++s) {
      for (const int64_t id : kIds[f][s]) {
        Row& row = out[table_of(f)].try_emplace(id, kDims[table_of(f)], 0.0).first->second;
        for (size_t d = 0; d < row.size(); ++d) row[d] += gradient_of(f, s, static_cast<int>(d));
      }
    }
  }
  return out;
}

double squares(const Rows& rows) {
  double out = 0;
  for (const auto& [id, row] : rows) {
    for (const double x : row) out += x * x;
  }
  return out;
}
void scale(Rows& rows, double factor) {
  for (auto& [id, row] : rows) {
    for (double& x : row) x *= factor;
  }
}

Training::Training(const Holder& holder, const OptimizerHandle& optimizer, TableConfig first,
                   TableConfig second, const std::optional<EmbeddingOptimizer>& own, bool pipelined,
                   const std::string& partition)
    : strategy_(strategy_of(holder)), scope_(strategy_->scope()), optimizer_(optimizer) {
  TableConfig* const configs[] = {&first, &second};
  for (int t = 0; t < 2; ++t) {
    configs[t]->vocabulary_size = configs[t]->dynamic ? 0 : kRows[t];
    configs[t]->dim = kDims[t];
    configs[t]->combiner = "sum";
    configs[t]->name = t == 0 ? "first" : "second";
    tables_.push_back(make_table(*configs[t]));
  }
  Nest<FeatureConfig>::Items features;
  for (int f = 0; f < 3; ++f) features.push_back(FeatureConfig{.table = tables_[table_of(f)]});
  TPUEmbeddingOptions options{.feature_config = Nest<FeatureConfig>::list(std::move(features)),
                              .optimizer = own ? *own : EmbeddingOptimizer(optimizer_),
                              .pipeline_execution_with_tensor_core = pipelined,
                              .partition_strategy = partition};
  if (!holder.engine && !holder.cpu) options.embedding_feature = EmbeddingFeature::kUnsupported;
  layer_.emplace(std::move(options));
  (*layer_)->build(specs_of(batch(0, 1)));
  const auto start = starting_tables();
  for (int t = 0; t < 2; ++t) {
    const std::vector<double> flat_values = flat(start[t]);
    const Tensor values = Tensor::from(std::vector<float>(flat_values.begin(), flat_values.end()),
                                       {kRows[t], kDims[t]});
    if (configs[t]->dynamic) {
      std::vector<int64_t> keys(kRows[t]);
      std::iota(keys.begin(), keys.end(), 0);
      (*layer_)->dynamic_table(tables_[t]).assign_rows(Tensor::from(keys, {kRows[t]}), values);
    } else {
      (*layer_)->update_embedding_table(tables_[t], values);
    }
  }
}

void Training::step() {
  const int replicas = strategy_->num_replicas_in_sync();
  strategy_->run([&] {
    const ReplicaContext* const context = current_replica_context();
    const int replica = context == nullptr ? 0 : context->replica;
    const int64_t begin = kSamples * replica / replicas, end = kSamples * (replica + 1) / replicas;
    GradientTape tape;
    const Tensors found = (*layer_)(batch(begin, end));
    Tensor loss = Tensor::scalar<float>(0);
    for (int f = 0; f < 3; ++f) loss = loss + ops::sum(found[f].tensor() * factors(f, begin, end));
    const std::vector<Variable> variables = (*layer_)->trainable_variables();
    optimizer_->apply_gradients(tape.gradient(loss, variables), variables);
  });
}

std::vector<float> Training::table(int t) const {
  return (*layer_)->embedding_tables()[t].second.to_vector<float>();
}

void Training::expect_tables(const Tables& expected, double tolerance) const {
  for (int t = 0; t < 2; ++t) {
    SCOPED_TRACE(str("table ", t));
    testing_support::expect_near(table(t), flat(expected[t]),
                                 {.absolute = tolerance, .relative = tolerance});
  }
}

std::vector<std::string> Training::state_names() const {
  std::vector<std::string> out;
  for (const StateEntry& entry : (*layer_)->state_entries()) out.push_back(entry.name);
  return out;
}

}  // namespace keel::two_tables
