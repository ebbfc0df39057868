// Compares random configurations of TPUEmbedding with the naive reference: on the host, under a
// TPUStrategy without an engine (V0), and on engines of 1 to 7 cores on 1 to 3 hosts.
// KEEL_PROPERTY_SEED=<n> runs only the case of that seed, which a failure reports.
// KEEL_PROPERTY_CASES=<n> runs only the first n cases, for slow builds.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <sstream>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>

#include "tests/support/effort.h"
#include "tests/support/random_embedding_case.h"

namespace keel::property_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using naive::Batch;
using naive::Contribution;
using naive::NaiveTable;
using naive::random_case;
using naive::RandomBatch;
using naive::RandomCase;
using naive::RandomFeature;
using naive::RandomTable;
using naive::Row;
using naive::Rows;
using naive::Rules;

constexpr uint64_t kDefaultCases = 20000;
constexpr int kParts = 10;
constexpr int kFailuresShown = 3;

// The library's results. Activations are indexed by [step][replica * features + feature].
struct Outcome {
  std::vector<std::vector<Tensor>> activations;
  std::map<std::string, Tensor> state;                       // engine: tables and slots
  std::vector<std::vector<std::optional<Gradient>>> tables;  // host, V0: [replica][table]
};

struct Run {
  const RandomCase& random;
  layers::TPUEmbedding layer;
};

// Runs one replica's step: the lookup, and the gradient of sum(activation * coefficient).
void replica_step(const Run& run, size_t step, Outcome& out) {
  const RandomCase& random = run.random;
  const ReplicaContext* context = current_replica_context();
  const int replica = context == nullptr ? 0 : context->replica;
  const RandomBatch& batch = random.steps[step][replica];
  const Tensors features = map_structure(
      random.structure, [&](int f) { return naive::ids_of(random.features[f], batch.ids[f]); });
  const auto weights =
      map_structure(random.structure, [&](int f) { return naive::weights_of(batch.ids[f]); });
  GradientTape tape;
  const std::vector<TensorLike> found = flatten(run.layer(features, {.weights = weights}));
  Tensor loss;
  for (size_t f = 0; f < found.size(); ++f) {
    const Tensor& activation = found[f].tensor();
    out.activations[step][replica * found.size() + f] = activation;
    if (batch.gradients[f].empty()) continue;
    const Tensor part =
        ops::sum(activation * naive::tensor_of(batch.gradients[f], activation.shape()));
    loss = loss ? loss + part : part;
  }
  const auto gradients = tape.gradient(loss, run.layer->trainable_variables());
  if (random.rules == Rules::kEngine) return;
  for (const Gradient& g : gradients) {
    out.tables[replica].push_back(g ? std::optional<Gradient>(g) : std::nullopt);
  }
}

Outcome run_library(const RandomCase& random, Strategy& strategy) {
  const auto scope = strategy.scope();
  const std::vector<Table> tables = naive::tables_of(random);
  TPUEmbeddingOptions options = {.feature_config = naive::feature_config_of(random, tables),
                                 .pipeline_execution_with_tensor_core = random.pipelined};
  if (random.rules == Rules::kV0) options.embedding_feature = EmbeddingFeature::kUnsupported;
  const Run run = {.random = random, .layer = layers::TPUEmbedding(options)};
  run.layer->build(map_structure(random.structure, [&](int f) {
    return naive::ids_of(random.features[f], random.steps[0][0].ids[f]).spec();
  }));
  for (size_t t = 0; t < tables.size(); ++t) {
    run.layer->update_embedding_table(
        tables[t],
        naive::tensor_of(random.tables[t].values, {tables[t]->vocabulary_size, tables[t]->dim}));
  }
  Outcome out;
  out.tables.resize(random.replicas());
  for (size_t step = 0; step < random.steps.size(); ++step) {
    out.activations.emplace_back(random.replicas() * random.features.size());
    strategy.run([&] { replica_step(run, step, out); });
  }
  if (random.rules == Rules::kEngine) {
    for (const StateEntry& entry : run.layer->state_entries()) out.state[entry.name] = entry.get();
  }
  return out;
}

Outcome run_library(const RandomCase& random) {
  if (random.rules == Rules::kHost) {
    CPUStrategy strategy;
    return run_library(random, strategy);
  }
  TPUStrategy strategy({.num_hosts = random.hosts, .num_cores = random.cores});
  return run_library(random, strategy);
}

// The library computes in float32. Some formulas amplify rounding errors. References with slightly
// higher and slightly lower gradients bound the error that is acceptable.
constexpr double kNudge = 3e-7;

std::vector<Contribution> nudged(std::vector<Contribution> contributions, double nudge) {
  for (Contribution& c : contributions) {
    for (double& x : c.gradient) x += nudge * std::abs(x);
  }
  return contributions;
}

class Checker {
 public:
  // Returns the first difference between `got` and the reference; empty if there is none.
  std::string check(const RandomCase& random, const Outcome& got);

 private:
  void compare(const std::string& what, const Rows& exact, const Rows& higher, const Rows& lower,
               const Tensor& got);
  void check_step(const RandomCase& random, size_t step, const Outcome& got);
  void update(const RandomCase& random);
  void check_state(const RandomCase& random, const Outcome& got);
  void check_gradients(const RandomCase& random, const Outcome& got, int replica,
                       const std::vector<std::vector<Contribution>>& contributions);
  void fail(const std::string& text) {
    if (text_.empty()) text_ = text;
  }

  std::vector<NaiveTable> exact_, higher_, lower_;
  std::deque<std::vector<std::vector<Contribution>>> pending_;  // by step, by table
  std::string text_;                                            // the first difference
};

void Checker::compare(const std::string& what, const Rows& exact, const Rows& higher,
                      const Rows& lower, const Tensor& got) {
  const std::span<const float> values = got.data<float>();
  if (values.size() != exact.size() * (exact.empty() ? 0 : exact[0].size())) {
    return fail(what + ": " + std::to_string(values.size()) + " elements");
  }
  size_t k = 0;
  for (size_t row = 0; row < exact.size(); ++row) {
    for (size_t d = 0; d < exact[row].size(); ++d, ++k) {
      const double x = exact[row][d];
      const double doubt = std::max(std::abs(x - higher[row][d]), std::abs(x - lower[row][d]));
      const double tolerance = 2e-5 + 2e-5 * std::abs(x) + 20 * doubt;
      if (std::abs(values[k] - x) <= tolerance) continue;
      std::ostringstream text;
      text.precision(9);
      text << what << " row " << row << " column " << d << ": expected " << x << ", got "
           << values[k] << " (tolerance " << tolerance << ")";
      return fail(text.str());
    }
  }
}

void Checker::check_gradients(const RandomCase& random, const Outcome& got, int replica,
                              const std::vector<std::vector<Contribution>>& contributions) {
  for (size_t t = 0; t < random.tables.size(); ++t) {
    const Rows& values = random.tables[t].values;
    const std::string what =
        "gradient of table " + std::to_string(t) + " in replica " + std::to_string(replica);
    const auto expected = naive::sum_by_row(contributions[t]);
    const std::optional<Gradient>& gradient = got.tables[replica][t];
    if (!gradient) {
      if (!expected.empty()) fail(what + ": none");
      continue;
    }
    Rows dense(values.size(), Row(values[0].size(), 0.0));
    for (const auto& [id, row] : expected) dense[id] = row;
    compare(what, dense, dense, dense, gradient->dense());
    for (int64_t id : gradient->slices().ids.data<int64_t>()) {
      if (expected.count(id) == 0)
        fail(what + ": row " + std::to_string(id) + " was not looked up");
    }
  }
}

void Checker::check_step(const RandomCase& random, size_t step, const Outcome& got) {
  std::vector<std::vector<Contribution>> of_step(random.tables.size());
  for (int replica = 0; replica < random.replicas(); ++replica) {
    const RandomBatch& batch = random.steps[step][replica];
    std::vector<std::vector<Contribution>> of_replica(random.tables.size());
    for (size_t f = 0; f < random.features.size(); ++f) {
      const RandomFeature& feature = random.features[f];
      const Batch encoded = naive::encode(feature.rules, batch.ids[f], random.rules);
      const Tensor& activation = got.activations[step][replica * random.features.size() + f];
      const std::string what = "step " + std::to_string(step) + " replica " +
                               std::to_string(replica) + " feature " + std::to_string(f);
      std::vector<int64_t> shape = encoded.shape;
      shape.push_back(static_cast<int64_t>(random.tables[feature.table].values[0].size()));
      if (activation.shape() != Shape(shape)) fail(what + ": another shape");
      compare(what, naive::look_up(exact_[feature.table].rows(), encoded),
              naive::look_up(higher_[feature.table].rows(), encoded),
              naive::look_up(lower_[feature.table].rows(), encoded), activation);
      Rows gradient = batch.gradients[f];
      if (gradient.empty()) {
        if (random.rules != Rules::kEngine) continue;
        int64_t samples = 1;
        for (int64_t d : encoded.shape) samples *= d;
        gradient = Rows(samples, Row(shape.back(), 0.0));
      }
      for (Contribution& c : naive::row_contributions(encoded, gradient)) {
        of_replica[feature.table].push_back(std::move(c));
      }
    }
    if (random.rules != Rules::kEngine) check_gradients(random, got, replica, of_replica);
    for (size_t t = 0; t < of_step.size(); ++t) {
      of_step[t].insert(of_step[t].end(), of_replica[t].begin(), of_replica[t].end());
    }
  }
  if (random.rules != Rules::kEngine) return;
  pending_.push_back(std::move(of_step));
  if (!random.pipelined || pending_.size() > 1) update(random);
}

// Applies the oldest pending update.
void Checker::update(const RandomCase& random) {
  for (size_t t = 0; t < random.tables.size(); ++t) {
    exact_[t].step(pending_.front()[t], random.tables[t].rate);
    higher_[t].step(nudged(pending_.front()[t], kNudge), random.tables[t].rate);
    lower_[t].step(nudged(pending_.front()[t], -kNudge), random.tables[t].rate);
  }
  pending_.pop_front();
}

void Checker::check_state(const RandomCase& random, const Outcome& got) {
  for (size_t t = 0; t < random.tables.size(); ++t) {
    const std::string name = "t" + std::to_string(t);
    const auto found = [&](const std::string& key) -> const Tensor& {
      const auto it = got.state.find(key);
      if (it == got.state.end()) throw ValueError("no state entry '", key, "'");
      return it->second;
    };
    compare(name, exact_[t].rows(), higher_[t].rows(), lower_[t].rows(), found(name));
    for (const auto& [slot, rows] : exact_[t].slots()) {
      compare(name + "/" + slot, rows, higher_[t].slots().at(slot), lower_[t].slots().at(slot),
              found(name + "/" + slot));
    }
  }
}

std::string Checker::check(const RandomCase& random, const Outcome& got) {
  for (const RandomTable& table : random.tables) {
    exact_.emplace_back(table.values, table.optimizer);
    higher_.emplace_back(table.values, table.optimizer);
    lower_.emplace_back(table.values, table.optimizer);
  }
  for (size_t step = 0; step < random.steps.size(); ++step) check_step(random, step, got);
  while (!pending_.empty()) update(random);
  if (random.rules == Rules::kEngine) check_state(random, got);
  return text_;
}

std::vector<float> all_bits(const Outcome& outcome) {
  std::vector<float> out;
  const auto add = [&](const Tensor& t) {
    out.insert(out.end(), t.data<float>().begin(), t.data<float>().end());
  };
  for (const auto& step : outcome.activations) {
    for (const Tensor& t : step) add(t);
  }
  for (const auto& [name, t] : outcome.state) add(t);
  return out;
}

Rules rules_of(uint64_t seed) {
  const uint64_t kind = seed / kParts % 10;
  return kind < 3 ? Rules::kHost : kind < 5 ? Rules::kV0 : Rules::kEngine;
}

// Returns the failure of the case of a seed; empty if it passes.
std::string failure_of(uint64_t seed) {
  const RandomCase random = random_case(seed, rules_of(seed));
  std::string text;
  try {
    set_num_workers(1 + static_cast<int>(seed % 3));
    const Outcome outcome = run_library(random);
    text = Checker().check(random, outcome);
    if (text.empty() && seed / kParts % 8 == 5) {
      for (int workers = 1; workers <= 3; ++workers) {
        set_num_workers(workers);
        if (all_bits(run_library(random)) != all_bits(outcome))
          text = "other bits with other workers";
      }
    }
  } catch (const std::exception& error) {
    text = std::string("error: ") + error.what();
  }
  return text.empty() ? "" : text + "\n" + random.describe();
}

std::optional<uint64_t> number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

class PropertyTest : public testing::TestWithParam<int> {};

TEST_P(PropertyTest, RandomConfigurationsAgreeWithTheNaiveReference) {
  uint64_t first = GetParam(), stride = kParts;
  uint64_t last = number_in_environment("KEEL_PROPERTY_CASES")
                      .value_or(testing_support::cases_to_run(int64_t{kDefaultCases}));
  if (const auto only = number_in_environment("KEEL_PROPERTY_SEED")) {
    first = *only;
    last = first + 1;
  }
  int failures = 0;
  for (uint64_t seed = first; seed < last && failures < kFailuresShown; seed += stride) {
    const std::string text = failure_of(seed);
    if (text.empty()) continue;
    ++failures;
    ADD_FAILURE() << text << "rerun with KEEL_PROPERTY_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, PropertyTest, testing::Range(0, kParts));

}  // namespace keel::property_test
