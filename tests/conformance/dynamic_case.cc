#include "tests/conformance/dynamic_case.h"

#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/conformance/case_fields.h"
#include "tests/conformance/case_optimizer.h"

namespace keel::conformance {
namespace {

std::optional<DynamicVocabulary> vocabulary_of(Config dynamic) {
  if (const Config* const rows = dynamic.find("not_admitted")) {
    Config copy = *rows;
    if (const Config* const initial = copy.find("initial")) {
      const Initializer initializer = initializers::constant(initial->number());
      copy.erase("initial");
      copy.set("initializer", encode(initializer));
    }
    dynamic.set("not_admitted", copy);
  }
  std::optional<DynamicVocabulary> out;
  decode(dynamic, out);
  return out;
}

Initializer initializer_of(const Config& config) {
  if (config["type"].string() == "row_id") {
    return tpu::RowIdInitializer(config["offset"].integer());
  }
  return initializers::constant(config["value"].number());
}

template <class T>
TensorLike ragged(const std::vector<Config>& samples) {
  std::vector<std::vector<T>> rows;
  for (const Config& sample : samples) {
    std::vector<T>& row = rows.emplace_back();
    for (const Config& value : sample.items()) {
      if constexpr (std::is_same_v<T, int64_t>) {
        row.push_back(value.integer());
      } else if constexpr (std::is_same_v<T, float>) {
        row.push_back(static_cast<float>(value.number()));
      } else {
        row.push_back(value.string());
      }
    }
  }
  return RaggedTensor::from_rows(rows);
}

}  // namespace

DynamicCase::DynamicCase(const Config& of)
    : inputs(of),
      replicas(static_cast<int>(of["replicas"].integer())),
      pipelined(of["pipelined"].boolean()),
      gradient_scale(of["gradient_scale"].number()) {}

const Config& DynamicCase::table_config(const std::string& name) const {
  for (const Config& table : inputs["tables"].items()) {
    if (table["name"].string() == name) return table;
  }
  throw ValueError("no table '", name, "'");
}

bool DynamicCase::has_strings(const std::string& table) const {
  const Config* const key = table_config(table)["dynamic"].find("key");
  return key != nullptr && key->string() == "string";
}

Tensor DynamicCase::keys(const std::string& table, const Config& list) const {
  const TensorLike row = has_strings(table) ? ragged<std::string>({list}) : ragged<int64_t>({list});
  return row.values();
}

double DynamicCase::rate(const std::string& table, int64_t update) const {
  const Config::List& rates = table_config(table)["learning_rates"].items();
  return rates[update % std::ssize(rates)].number();
}

std::map<std::string, Table> DynamicCase::tables(
    const Config& dynamic, const std::function<double(const std::string&)>& rate_of) const {
  std::map<std::string, Table> out;
  for (const Config& table : inputs["tables"].items()) {
    const std::string name = table["name"].string();
    const Config* const changed = dynamic.find(name);
    out[name] = make_table(
        {.dim = table["dim"].integer(),
         .initializer = initializer_of(table["initializer"]),
         .optimizer = table["optimizer"]["type"].string().starts_with("keras_")
                          ? EmbeddingOptimizer()
                          : table_optimizer_of(table["optimizer"],
                                               [rate_of, name] { return rate_of(name); }),
         .combiner = table["combiner"].string(),
         .name = name,
         .dynamic = vocabulary_of(changed == nullptr ? table["dynamic"] : *changed)});
  }
  return out;
}

OptimizerHandle DynamicCase::keras_optimizer(std::function<double()> rate_of) const {
  const Config& optimizer = inputs["tables"].items().at(0)["optimizer"];
  const std::string type = optimizer["type"].string();
  Fields parameters(optimizer, "optimizer");
  if (type == "sgd") return optimizers::SGD({.learning_rate = std::move(rate_of)});
  if (type == "keras_adam") {
    return optimizers::Adam({.learning_rate = std::move(rate_of),
                             .beta_1 = parameters.number("beta_1", 0.9),
                             .beta_2 = parameters.number("beta_2", 0.999),
                             .epsilon = parameters.number("epsilon", 1e-7)});
  }
  if (type != "keras_adagrad") throw ValueError("unknown optimizer '", type, "' of a variable");
  return optimizers::Adagrad(
      {.learning_rate = std::move(rate_of),
       .initial_accumulator_value = parameters.number("initial_accumulator_value", 0.1),
       .epsilon = parameters.number("epsilon", 1e-7)});
}

Nest<FeatureConfig> DynamicCase::features(const std::map<std::string, Table>& tables) const {
  Nest<FeatureConfig>::Dict out;
  for (const auto& [name, feature] : inputs["features"].entries()) {
    const Config* const length = feature.find("max_sequence_length");
    out.emplace(name,
                FeatureConfig{.table = tables.at(feature["table"].string()),
                              .max_sequence_length = length == nullptr ? 0 : length->integer()});
  }
  return out;
}

namespace {

// Returns a batch of the same samples without ids.
Config without_ids(const Config& batch) {
  Config out = Config::dict();
  for (const auto& [name, feature] : batch.entries()) {
    Config part = feature;
    for (const char* const key : {"ids", "weights"}) {
      const Config* const found = feature.find(key);
      if (found == nullptr) continue;
      part.set(key, Config(Config::List(found->items().size(), Config::List())));
    }
    out.set(name, part);
  }
  return out;
}

}  // namespace

std::vector<DynamicBatch> DynamicCase::batches(const Config& action, bool joined,
                                               int of_replicas) const {
  std::vector<DynamicBatch> out;
  Config::List all = action["batches"].items();
  while (std::ssize(all) < of_replicas) all.push_back(without_ids(all[0]));
  for (size_t first = 0; first < all.size(); first += joined ? all.size() : 1) {
    DynamicBatch& batch = out.emplace_back();
    for (const auto& [name, feature] : inputs["features"].entries()) {
      Config::List ids, weights;
      for (size_t r = first; r < (joined ? all.size() : first + 1); ++r) {
        const Config& part = all[r][name];
        for (const Config& sample : part["ids"].items()) ids.push_back(sample);
        if (const Config* const found = part.find("weights")) {
          for (const Config& sample : found->items()) weights.push_back(sample);
        }
        if (const Config* const found = part.find("targets")) {
          for (const Config& target : found->items()) {
            batch.targets[name].push_back(target.number());
          }
        }
      }
      const bool strings = has_strings(feature["table"].string());
      batch.ids.emplace(name, strings ? ragged<std::string>(ids) : ragged<int64_t>(ids));
      batch.weights.emplace(name, weights.empty() ? std::optional<TensorLike>()
                                                  : std::optional(ragged<float>(weights)));
    }
  }
  return out;
}

}  // namespace keel::conformance
