#include "tests/conformance/embedding_replay.h"

#include <algorithm>
#include <limits>
#include <set>

#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>

#include "tests/conformance/case_inputs.h"
#include "tests/conformance/training_replay.h"

namespace keel::conformance {
namespace {

using distribute::Strategy;
using distribute::TPUStrategy;
using FeatureWeights = std::optional<Nest<std::optional<TensorLike>>>;

void lookup_case(const std::string& kind, Fields& fields, Fields& expected, Comparison& result) {
  const Modes modes = modes_of(fields, "host_and_engine");
  const Array values = array_of(fields.need("table"));
  if (values.shape.size() != 2) throw ValueError("field 'table': must be rows of numbers");
  const FeatureInput input =
      kind.starts_with("sparse") ? sparse_input(fields) : ragged_input(fields);
  const Table table = make_table(table_of(fields, values.shape[0], values.shape[1]));
  const FeatureConfig feature = feature_of(fields, table);
  fields.finish();
  const Array output = array_of(expected.need("output"));
  expected.finish();
  under_strategies(modes, result, [&](Strategy& strategy, const std::string& where) {
    const layers::TPUEmbedding layer({.feature_config = feature, .optimizer = "sgd"});
    layer->build(Specs(input.ids.spec()));
    layer->update_embedding_table(table, float_tensor(values));
    FeatureWeights weights;
    if (input.weights) weights = Nest<std::optional<TensorLike>>(input.weights);
    const auto outputs =
        strategy.run([&] { return layer(Tensors(input.ids), {.weights = weights}).tensor(); });
    for (int r = 0; r < strategy.num_local_replicas() && result.differences().empty(); ++r) {
      result.compare(where + "output", output, array_of(outputs[r]));
    }
    result.compare(where + "table after the lookup", values,
                   array_of(layer->embedding_tables()[0].second));
  });
}

Array integers(const std::vector<int64_t>& values) {
  return {.shape = {static_cast<int64_t>(values.size())}, .values = {values.begin(), values.end()}};
}

// Returns the rows of a host in storage order, at most `most`.
Array rows_of_host(const distribute::Partition& partition, int host, int64_t most) {
  std::vector<int64_t> out;
  for (int64_t k = 0; k < std::min(partition.rows_of_host(host), most); ++k) {
    out.push_back(partition.row_of_host(host, k));
  }
  return integers(out);
}

void compare_partition(int64_t rows, const distribute::EngineConfiguration& record,
                       Fields& expected, Comparison& result) {
  distribute::Sharding sharding = record.sharding();
  const distribute::Partition blocks(rows, sharding);
  std::vector<int64_t> sizes, offsets;
  int64_t shards = 0;
  for (int host = 0; host < sharding.hosts; ++host) {
    sizes.push_back(blocks.rows_of_host(host));
    offsets.push_back(blocks.first_row_of_host(host));
    if (sizes.back() > 0) ++shards;
  }
  if (const Config* found = expected.find("sizes")) {
    result.compare("sizes", array_of(*found), integers(sizes));
  }
  if (const Config* found = expected.find("offsets")) {
    result.compare("offsets", array_of(*found), integers(offsets));
  }
  if (const Config* found = expected.find("created_shards")) {
    result.compare("created_shards", found->integer(), shards);
  }
  if (const Config* found = expected.find("config_vocabulary_size")) {
    result.compare("config_vocabulary_size", found->integer(), record.tables.at(0).rows);
  }
  const Config* mod_rows = expected.find("mod_rows");
  expected.finish();
  if (mod_rows == nullptr) return;
  sharding.strategy = distribute::ShardingStrategy::kMod;
  const distribute::Partition partition(rows, sharding);
  result.compare("hosts of mod_rows", static_cast<int64_t>(mod_rows->items().size()),
                 sharding.hosts);
  for (int host = 0; host < sharding.hosts; ++host) {
    const Array wanted = array_of(mod_rows->items().at(host));
    result.compare("mod_rows[" + std::to_string(host) + "]", wanted,
                   rows_of_host(partition, host, static_cast<int64_t>(wanted.values.size()) + 1));
  }
}

void partition_case(Fields& fields, Fields& expected, Comparison& result) {
  if (modes_of(fields, "engine").host) {
    throw ValueError("mode of a partition case must be 'engine'");
  }
  const int64_t rows = fields.need("vocabulary_size").integer();
  const int64_t hosts = fields.need("num_hosts").integer();
  fields.finish();
  if (hosts > std::numeric_limits<int>::max()) throw ValueError("num_hosts: too many");
  TPUStrategy strategy({.num_hosts = static_cast<int>(hosts), .num_cores = 1});
  const auto scope = strategy.scope();
  const layers::TPUEmbedding layer(
      {.feature_config =
           FeatureConfig{
               .table = make_table({.vocabulary_size = rows, .dim = 1, .initializer = "zeros"})},
       .optimizer = "sgd"});
  layer->build(Specs(TensorSpec{.shape = {1}, .dtype = DType::kInt64}));
  compare_partition(rows, distribute::active_engine(strategy)->configuration(), expected, result);
}

void replay(const Config& test_case, std::string& out) {
  for (const auto& [key, value] : test_case.entries()) {
    static const std::set<std::string> kKnown = {"name", "description", "inputs", "expected"};
    if (kKnown.count(key) == 0) throw ValueError("unknown field '", key, "' of a case");
  }
  Fields fields(test_case["inputs"], "inputs"), expected(test_case["expected"], "expected");
  Comparison result(fields.number("rtol", 2e-5), fields.number("atol", 2e-6));
  const std::string kind = fields.need("kind").string();
  static const std::set<std::string> kLookups = {"sparse", "ragged", "sparse_sequence",
                                                 "ragged_sequence", "ragged_output_shape"};
  if (kLookups.count(kind) != 0) {
    lookup_case(kind, fields, expected, result);
  } else if (kind == "sparse_gradient") {
    replay_gradient(fields, expected, result);
  } else if (kind == "pipeline") {
    replay_pipeline(fields, expected, result);
  } else if (kind == "partition") {
    partition_case(fields, expected, result);
  } else if (kind == "training") {
    replay_training(fields, expected, result);
  } else {
    throw ValueError("unknown kind '", kind, "'");
  }
  out = result.differences();
}

}  // namespace

std::string replay_embedding_case(const Config& test_case) {
  std::string out;
  try {
    replay(test_case, out);
  } catch (const std::exception& error) {
    out += "  error: " + std::string(error.what()) + "\n";
  }
  return out;
}

}  // namespace keel::conformance
