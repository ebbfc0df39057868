#include "tests/conformance/dynamic_replay.h"

#include <algorithm>
#include <exception>
#include <memory>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/run_collectively.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>

#include "tests/conformance/case_fields.h"
#include "tests/conformance/dynamic_case.h"

namespace keel::conformance {
namespace {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using Weights = Nest<std::optional<TensorLike>>;

constexpr int kMostHosts = 3;

// A distribution of the replicas.
struct Distribution {
  int hosts = 1, cores = 1;
  bool is_variable = false;  // else in an engine
  // One replica has the samples of all.
  bool is_joined() const { return is_variable && hosts * cores == 1; }
  std::string name() const { return str(is_variable ? "variable" : "engine", ' ', hosts); }
};

// Layers whose tables are variables under a TPUStrategy have no sequences.
bool has_sequences(const DynamicCase& of) {
  for (const auto& [name, feature] : of.inputs["features"].entries()) {
    if (feature.find("max_sequence_length") != nullptr) return true;
  }
  return false;
}

// Each process of a job needs a host. With `idle`, there may be more hosts than the case has
// replicas; the other replicas then have no ids.
std::vector<Distribution> distributions_of(const DynamicCase& of, bool idle) {
  std::vector<Distribution> out;
  const std::string backend = of.inputs["backend"].string();
  const int processes = distribute::processes().size();
  const auto cores_of = [&](int hosts) { return (of.replicas + hosts - 1) / hosts; };
  if (backend != "engine") {
    if (processes == 1) out.push_back({.is_variable = true});
    const int first = processes == 1 && of.replicas == 1 ? 2 : processes;
    for (int hosts = first; hosts <= (idle ? kMostHosts : first) && !has_sequences(of); ++hosts) {
      out.push_back({.hosts = hosts, .cores = cores_of(hosts), .is_variable = true});
    }
  }
  if (backend == "variable") return out;
  for (int hosts = processes; hosts <= (idle ? kMostHosts : of.replicas); ++hosts) {
    if (!idle && of.replicas % hosts != 0) continue;
    out.push_back({.hosts = hosts, .cores = cores_of(hosts)});
  }
  return out;
}

std::unique_ptr<Strategy> make_strategy(const Distribution& distribution) {
  if (distribution.is_joined()) return std::make_unique<CPUStrategy>();
  return std::make_unique<TPUStrategy>(distribute::TPUStrategyOptions{
      .num_hosts = distribution.hosts, .num_cores = distribution.cores});
}

// The layer of a case: TPUEmbedding, or, for variables in several replicas, DistributedEmbedding.
class CaseLayer {
 public:
  CaseLayer(const DynamicCase& of, const Distribution& distribution,
            const std::map<std::string, Table>& tables)
      : tables_(tables) {
    if (!distribution.is_variable || distribution.is_joined()) {
      tpu_.emplace(layers::TPUEmbedding({.feature_config = of.features(tables),
                                         .pipeline_execution_with_tensor_core = of.pipelined}));
      return;
    }
    std::map<std::string, keras_rs::Table> copies;
    for (const auto& [name, table] : tables) {
      copies[name] = keras_rs::make_table({.name = name,
                                           .embedding_dim = table->dim,
                                           .initializer = table->initializer,
                                           .combiner = table->combiner,
                                           .placement = "default_device",
                                           .dynamic = table->dynamic});
    }
    Nest<keras_rs::FeatureConfig>::Dict features;
    for (const auto& [name, feature] : of.inputs["features"].entries()) {
      const keras_rs::Table& table = copies.at(feature["table"].string());
      features.emplace(name,
                       keras_rs::FeatureConfig{.name = name,
                                               .table = table,
                                               .input_shape = {kUnknown, kMostIds},
                                               .output_shape = {kUnknown, table->embedding_dim}});
    }
    distributed_.emplace(layers::DistributedEmbedding({.feature_configs = features}));
  }

  void build(const Tensors& ids) const {
    if (tpu_) {
      (*tpu_)->build(specs_of(ids));
    } else {
      (*distributed_)->build(specs_of(ids));
    }
  }
  Tensors look_up(const Tensors& ids, const Weights& weights) const {
    if (tpu_) return (*tpu_)(ids, {.weights = weights});
    return (*distributed_)(ids, {.weights = weights});
  }
  std::vector<Variable> trainable_variables() const {
    return tpu_ ? (*tpu_)->trainable_variables() : (*distributed_)->trainable_variables();
  }
  DynamicTable dynamic_table(const std::string& name) const {
    return tpu_ ? (*tpu_)->dynamic_table(tables_.at(name)) : (*distributed_)->dynamic_table(name);
  }

 private:
  static constexpr int64_t kMostIds = 1000;  // of a sample
  const std::map<std::string, Table> tables_;
  std::optional<layers::TPUEmbedding> tpu_;
  std::optional<layers::DistributedEmbedding> distributed_;
};

// A strategy with a layer. A restored checkpoint gets new ones.
class Job {
 public:
  Job(const DynamicCase& of, const Distribution& distribution, const Config& dynamic)
      : case_(of),
        replicas_(distribution.hosts * distribution.cores),
        is_joined_(distribution.is_joined()),
        strategy_(make_strategy(distribution)),
        scope_(strategy_->scope()),
        tables_(of.tables(dynamic,
                          [this](const std::string& table) { return case_.rate(table, updates); })),
        layer_(of, distribution, tables_) {
    for (const Config& action : of.inputs["actions"].items()) {
      if (action.find("batches") == nullptr) continue;
      layer_.build(Tensors(of.batches(action, is_joined_)[0].ids));
      break;
    }
    if (distribution.is_variable) {
      optimizer_.emplace(
          of.keras_optimizer([this] { return case_.rate(tables_.begin()->first, updates); }));
    }
    for (const auto& [name, table] : tables_) {
      this->table(name).on_evict([this, key = name](const EvictedRows& rows) {
        std::vector<Tensor>& keys = evicted[key];
        keys.push_back(rows.keys);
      });
    }
  }

  DynamicTable table(const std::string& name) const { return layer_.dynamic_table(name); }
  const std::map<std::string, Table>& tables() const { return tables_; }

  // Looks up a batch in all replicas. Stores the activations by replica in `out`, even if the
  // update throws.
  enum class Mode { kTrain, kLookup, kEvaluate };
  using Activations = std::vector<std::map<std::string, Tensor>>;
  void step(const Config& action, Mode mode, Activations& out) {
    const std::vector<DynamicBatch> batches =
        case_.batches(action, is_joined_, is_joined_ ? 0 : replicas_);
    out.resize(batches.size());
    strategy_->run([&] {
      const ReplicaContext* const context = current_replica_context();
      const int replica = context == nullptr ? 0 : context->replica;
      const DynamicBatch& batch = batches[replica];
      const auto look_up = [&] {
        Tensors found = layer_.look_up(Tensors(batch.ids), Weights(batch.weights));
        for (const auto& [name, leaf] : found.entries()) out[replica][name] = leaf.tensor();
        return found;
      };
      if (mode == Mode::kEvaluate) {
        look_up();
        return;
      }
      GradientTape tape;
      const Tensors found = look_up();
      if (mode == Mode::kLookup) return;
      Tensor loss;
      for (const auto& [name, leaf] : found.entries()) {
        const Tensor part = ops::sum(leaf.tensor() * gradient_of(leaf.tensor(), batch, name));
        loss = loss ? loss + part : part;
      }
      const std::vector<Variable> variables = layer_.trainable_variables();
      const std::vector<Gradient> gradients = tape.gradient(loss, variables);
      if (optimizer_) (*optimizer_)->apply_gradients(gradients, variables);
    });
  }

  int64_t updates = 0;                                 // updates that have been requested
  std::map<std::string, std::vector<Tensor>> evicted;  // by table, since it was last cleared

 private:
  // The gradient is a constant of the loss.
  Tensor gradient_of(const Tensor& activation, const DynamicBatch& batch,
                     const std::string& name) const {
    const std::vector<double>& targets = batch.targets.at(name);
    const int64_t dim = activation.dim(-1);
    const auto values = activation.data<float>();
    std::vector<float> out(values.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const double target = targets[at / dim] * static_cast<double>(at % dim + 1);
      out[i] = static_cast<float>(case_.gradient_scale * (values[i] - target));
    }
    return Tensor::from(out, activation.shape());
  }

  const DynamicCase& case_;
  const int replicas_;
  const bool is_joined_;
  const std::unique_ptr<Strategy> strategy_;
  const Strategy::Scope scope_;
  const std::map<std::string, Table> tables_;
  const CaseLayer layer_;
  std::optional<OptimizerHandle> optimizer_;  // of variables
};

Config keys_config(const Tensor& keys) {
  Config out = Config::List();
  if (keys.dtype() == DType::kString) {
    for (const std::string& key : keys.data<std::string>()) out.push_back(key);
  } else {
    for (const int64_t key : keys.data<int64_t>()) out.push_back(key);
  }
  return out;
}

const std::vector<std::pair<const char*, int64_t DynamicTableStatistics::*>>& counters() {
  static const std::vector<std::pair<const char*, int64_t DynamicTableStatistics::*>> kAll = {
      {"updates", &DynamicTableStatistics::updates},
      {"looked_up", &DynamicTableStatistics::looked_up},
      {"hits", &DynamicTableStatistics::hits},
      {"fresh", &DynamicTableStatistics::fresh},
      {"not_admitted", &DynamicTableStatistics::not_admitted},
      {"admitted", &DynamicTableStatistics::admitted},
      {"assigned", &DynamicTableStatistics::assigned},
      {"refused", &DynamicTableStatistics::refused},
      {"dropped_gradients", &DynamicTableStatistics::dropped_gradients},
      {"evicted_ttl", &DynamicTableStatistics::evicted_ttl},
      {"evicted_norm", &DynamicTableStatistics::evicted_norm},
      {"evicted_capacity", &DynamicTableStatistics::evicted_capacity},
      {"pruned", &DynamicTableStatistics::pruned},
      {"erased", &DynamicTableStatistics::erased},
      {"inference_looked_up", &DynamicTableStatistics::inference_looked_up},
      {"inference_hits", &DynamicTableStatistics::inference_hits},
      {"size", &DynamicTableStatistics::size},
      {"pending", &DynamicTableStatistics::pending}};
  return kAll;
}

// Returns the lists of all processes, one after the other.
Config::List gathered(const Config::List& mine) {
  distribute::ProcessGroup& group = distribute::processes();
  if (group.size() == 1) return mine;
  Config::List out;
  for (const std::string& text :
       distribute::gather_texts(group, "replayed lists", to_json(Config(mine)))) {
    const Config list = parse_json(text);
    out.insert(out.end(), list.items().begin(), list.items().end());
  }
  return out;
}

// A hash of the bits of values.
class Bits {
 public:
  void add(const Tensor& tensor) {
    if (tensor.dtype() == DType::kString) {
      for (const std::string& text : tensor.data<std::string>())
        add(std::as_bytes(std::span(text)));
    } else {
      add(tensor.raw());
    }
  }
  void add(const DynamicTableState& state) {
    for (const Tensor* const part :
         {&state.keys, &state.rows, &state.count, &state.last, &state.born, &state.pending_keys,
          &state.pending_count, &state.pending_last, &state.fallback}) {
      add(*part);
    }
    for (const auto& [name, slot] : state.slots) add(slot);
    for (const auto& [name, slot] : state.fallback_slots) add(slot);
    add(std::as_bytes(std::span(state.sketch)));
  }
  uint64_t hash() const { return hash_; }

 private:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      hash_ = (hash_ ^ static_cast<uint64_t>(byte)) * 0x100000001B3;
    }
  }

  uint64_t hash_ = 0xCBF29CE484222325;
};

// Runs the actions of a case under one distribution and compares their results.
class Replay {
 public:
  Replay(const DynamicCase& of, const Distribution& distribution, Comparison& result)
      : case_(of),
        distribution_(distribution),
        result_(result),
        job_(std::make_unique<Job>(of, distribution, Config::dict())) {}

  void run(const Config& expected) {
    const Config::List& actions = case_.inputs["actions"].items();
    for (size_t i = 0; i < actions.size() && result_.differences().empty(); ++i) {
      const std::string name = actions[i]["action"].string();
      where_ =
          str(distribution_.name(), " x ", distribution_.cores, ": action ", i, " (", name, "): ");
      run_action(name, actions[i], expected["results"].items().at(i));
    }
    where_ += "final: ";
    if (result_.differences().empty()) compare_dump(expected["final"]);
  }

  // Returns a hash of the tables.
  uint64_t bits() const {
    Bits out;
    for (const auto& [table, config] : job_->tables()) out.add(job_->table(table).state());
    return out.hash();
  }

 private:
  void run_action(const std::string& name, const Config& action, const Config& expected) {
    job_->evicted.clear();
    const std::string error = error_of([&] { act(name, action, expected); });
    const Config* const wanted = expected.find("error");
    const std::string wanted_error = wanted == nullptr ? "" : wanted->string();
    if (error.substr(0, wanted_error.size()) != wanted_error ||
        error.empty() != wanted_error.empty()) {
      result_.report(where_ + "error", wanted_error, error);
    }
    if (const Config* const evicted = expected.find("evicted")) compare_evicted(*evicted);
    if (const Config* const statistics = expected.find("statistics")) {
      for (const auto& [table, counts] : statistics->entries()) compare_counters(table, counts);
    }
  }

  template <class Fn>
  static std::string error_of(const Fn& fn) {
    try {
      fn();
    } catch (const ValueError& error) {
      return str("ValueError: ", error.what());
    } catch (const RuntimeError& error) {
      return str("RuntimeError: ", error.what());
    }
    return "";
  }

  void act(const std::string& name, const Config& action, const Config& expected) {
    if (name == "train" || name == "lookup" || name == "evaluate") {
      look_up(name, action, expected);
    } else if (name == "dump") {
      compare_dump(expected["tables"]);
    } else if (name == "save") {
      save(action["name"].string());
    } else if (name == "restore") {
      restore(action);
    } else {
      call(name, action, expected);
    }
  }

  void look_up(const std::string& name, const Config& action, const Config& expected) {
    const Job::Mode mode = name == "train"    ? Job::Mode::kTrain
                           : name == "lookup" ? Job::Mode::kLookup
                                              : Job::Mode::kEvaluate;
    Job::Activations activations;
    std::exception_ptr error;
    try {
      job_->step(action, mode, activations);
      if (name == "train") ++job_->updates;
    } catch (...) {
      error = std::current_exception();
    }
    compare_activations(activations, expected);
    if (error != nullptr) std::rethrow_exception(error);
  }

  void compare_activations(const Job::Activations& activations, const Config& expected) {
    const Config::List& wanted = expected["activations"].items();
    for (size_t r = 0; r < std::min(activations.size(), wanted.size()); ++r) {
      for (const auto& [feature, tensor] : activations[r]) {
        Array got = array_of(tensor);
        got.shape = {tensor.size() / tensor.dim(-1), tensor.dim(-1)};
        Array rows = array_of(wanted[r][feature]);
        for (size_t next = r + 1; distribution_.is_joined() && next < wanted.size(); ++next) {
          const Array more = array_of(wanted[next][feature]);
          rows.shape[0] += more.shape[0];
          rows.values.insert(rows.values.end(), more.values.begin(), more.values.end());
        }
        result_.compare(str(where_, "activations of replica ", r, ", ", feature), rows, got);
      }
    }
  }

  void call(const std::string& name, const Config& action, const Config& expected) {
    const std::string table = action["table"].string();
    const DynamicTable handle = job_->table(table);
    if (name == "clock") {
      handle.set_clock(action["value"].integer());
    } else if (name == "prune") {
      prune(handle, action);
    } else if (name == "erase") {
      handle.erase(case_.keys(table, action["keys"]));
    } else if (name == "assign") {
      handle.assign_rows(case_.keys(table, action["keys"]), float_tensor(array_of(action["rows"])));
    } else if (name == "export") {
      compare_export(handle, action["min_count"].integer(), expected);
    } else {
      throw ValueError("unknown action '", name, "'");
    }
  }

  static void prune(const DynamicTable& handle, const Config& action) {
    PruneOptions options;
    if (const Config* const found = action.find("ttl")) options.ttl = found->integer();
    if (const Config* const found = action.find("min_l2_norm")) {
      options.min_l2_norm = found->number();
    }
    if (const Config* const found = action.find("min_count")) options.min_count = found->integer();
    if (const Config* const found = action.find("max_rows")) options.max_rows = found->integer();
    handle.prune(options);
  }

  void save(const std::string& name) {
    for (const auto& [table, config] : job_->tables()) {
      saved_[name][table] = job_->table(table).state();
    }
  }

  // A restored job goes on as if it had run all updates that the saved one had.
  void restore(const Config& action) {
    const Config* const dynamic = action.find("dynamic");
    job_.reset();
    job_ =
        std::make_unique<Job>(case_, distribution_, dynamic == nullptr ? Config::dict() : *dynamic);
    for (const auto& [table, state] : saved_.at(action["name"].string())) {
      job_->table(table).restore(state);
      job_->updates = state.statistics.updates;
    }
  }

  void compare_evicted(const Config& expected) {
    for (const auto& [table, keys] : expected.entries()) {
      Config::List got;
      for (const Tensor& some : job_->evicted[table]) {
        const Config keys_of_call = keys_config(some);
        got.insert(got.end(), keys_of_call.items().begin(), keys_of_call.items().end());
      }
      // Every process evicts all ids of a variable, and those that it owns of an engine.
      if (!distribution_.is_variable) got = gathered(got);
      std::ranges::sort(got, [](const Config& a, const Config& b) {
        return a.is_string() ? a.string() < b.string() : a.integer() < b.integer();
      });
      compare_keys("evicted of " + table, keys, got);
    }
  }

  void compare_keys(const std::string& what, const Config& expected, const Config& got) {
    if (!(expected == got)) result_.report(where_ + what, to_json(expected), to_json(got));
  }

  void compare_counters(const std::string& table, const Config& expected) {
    const DynamicTableStatistics got = job_->table(table).statistics();
    for (const auto& [name, member] : counters()) {
      result_.compare(str(where_, table, ".", name), expected[name].integer(), got.*member);
    }
  }

  void compare_export(const DynamicTable& handle, int64_t min_count, const Config& expected) {
    const DynamicTableState state = handle.state();
    Config keys = Config::List();
    Array rows = {.shape = {0, state.rows.dim(1)}};
    const Config all = keys_config(state.keys);
    const Array values = array_of(state.rows);
    for (size_t i = 0; i < all.items().size(); ++i) {
      if (state.count.data<int64_t>()[i] < min_count) continue;
      keys.push_back(all.items()[i]);
      ++rows.shape[0];
      const auto first = values.values.begin() + static_cast<int64_t>(i) * rows.shape[1];
      rows.values.insert(rows.values.end(), first, first + rows.shape[1]);
    }
    compare_keys("keys", expected["keys"], keys);
    result_.compare(where_ + "rows", array_of(expected["rows"]), rows);
  }

  void compare_rows(const std::string& what, const Config& expected, const Tensor& got) {
    if (got.size() == 0 && expected.items().empty()) return;
    result_.compare(where_ + what, array_of(expected), array_of(got));
  }

  void compare_slots(const std::string& what, const Config& expected,
                     const std::map<std::string, Tensor>& got) {
    // The cases have the names of engine rules; slots of Keras optimizers have Keras's.
    static const std::map<std::string, std::string> kKerasNames = {
        {"accumulators", "accumulator"}, {"momenta", "momentum"}, {"velocities", "velocity"}};
    for (const auto& [name, values] : expected.entries()) {
      auto found = got.find(name);
      if (found == got.end() && kKerasNames.contains(name)) found = got.find(kKerasNames.at(name));
      if (found == got.end()) {
        result_.report(where_ + what, "slot " + name, "none");
      } else {
        compare_rows(what + name, values, found->second);
      }
    }
  }

  void compare_dump(const Config& expected) {
    for (const auto& [table, wanted] : expected.entries()) {
      const DynamicTableState got = job_->table(table).state();
      const std::string prefix = table + ".";
      compare_keys(prefix + "keys", wanted["keys"], keys_config(got.keys));
      compare_keys(prefix + "count", wanted["count"], keys_config(got.count));
      compare_keys(prefix + "last", wanted["last"], keys_config(got.last));
      compare_keys(prefix + "born", wanted["born"], keys_config(got.born));
      const Config& pending = wanted["pending"];
      compare_keys(prefix + "pending.keys", pending["keys"], keys_config(got.pending_keys));
      compare_keys(prefix + "pending.count", pending["count"], keys_config(got.pending_count));
      compare_keys(prefix + "pending.last", pending["last"], keys_config(got.pending_last));
      if (!result_.differences().empty()) return;
      compare_rows(prefix + "rows", wanted["rows"], got.rows);
      compare_slots(prefix + "slots.", wanted["slots"], got.slots);
      compare_rows(prefix + "fallback.rows", wanted["fallback"]["rows"], got.fallback);
      compare_slots(prefix + "fallback.slots.", wanted["fallback"]["slots"], got.fallback_slots);
    }
  }

  const DynamicCase& case_;
  const Distribution distribution_;
  Comparison& result_;
  std::unique_ptr<Job> job_;
  std::map<std::string, std::map<std::string, DynamicTableState>> saved_;  // by name, by table
  std::string where_;
};

}  // namespace

std::string replay_dynamic_case(const Config& test_case, std::map<std::string, uint64_t>* bits) {
  std::string out;
  try {
    const DynamicCase inputs(test_case["inputs"]);
    Comparison result(inputs.inputs["rtol"].number(), inputs.inputs["atol"].number());
    for (const Distribution& distribution : distributions_of(inputs, bits != nullptr)) {
      if (!result.differences().empty()) break;
      Replay replay(inputs, distribution, result);
      replay.run(test_case["expected"]);
      if (bits != nullptr && !distribution.is_joined()) {
        (*bits)[distribution.name()] = replay.bits();
      }
    }
    out = result.differences();
  } catch (const std::exception& error) {
    out += "  error: " + std::string(error.what()) + "\n";
  }
  return out;
}

}  // namespace keel::conformance
