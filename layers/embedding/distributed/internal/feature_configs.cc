#include <keel/layers/embedding/distributed/internal/feature_configs.h>

#include <absl/strings/match.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <keel/layers/embedding/tables/internal/kernel_options.h>

namespace keel::keras_rs {
namespace {

constexpr int kMaxDepth = 64;  // bounds the recursion on structures in files

struct FeatureFields {
  std::string name = {};
  int64_t table = 0;
  Shape input_shape = {}, output_shape = {};

  static constexpr void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("table", self.table);
    field("input_shape", self.input_shape);
    field("output_shape", self.output_shape);
  }
};

void check_table(const std::string& caller, const TableConfig& table) {
  if (table.name.empty() || absl::StrContains(table.name, '/')) {
    throw ValueError(caller, ": the name of a table must not be empty or contain '/', received '",
                     table.name, "'");
  }
  if (table.dynamic) {
    if (table.vocabulary_size != 0) {
      throw ValueError(caller, ": vocabulary_size and dynamic of table '", table.name,
                       "' exclude each other; received vocabulary_size ", table.vocabulary_size);
    }
    keel::check(*table.dynamic, table.name);
    check_row_initializers(*table.dynamic, table_initializer(table), table.name);
  }
  if ((table.vocabulary_size <= 0 && !table.dynamic) || table.embedding_dim <= 0) {
    throw ValueError(caller, ": vocabulary_size and embedding_dim of table '", table.name,
                     "' must be positive, received ", table.vocabulary_size, " and ",
                     table.embedding_dim);
  }
  combiner_from_name(table.combiner);
  if (table.placement != "auto" && table.placement != "sparsecore" &&
      table.placement != "default_device") {
    throw ValueError(caller, ": placement of table '", table.name,
                     "' must be auto, sparsecore or default_device, received '", table.placement,
                     "'");
  }
}

// The key of Keel's own optimizer config, next to the class and config that Keras reads. Keras
// ignores this key.
constexpr char kOwnOptimizer[] = "embedding_optimizer";

// Returns Keras's serialized form of an object.
Config keras_object(const char* module, const Config& class_name, Config config) {
  return Config::dict({{"module", module},
                       {"class_name", class_name},
                       {"config", std::move(config)},
                       {"registered_name", Config()}});
}

// Encodes the optimizer as a Keras optimizer, which keras_rs can read. Optimizers without a Keras
// class keep Keel's encoding.
Config keras_optimizer(const EmbeddingOptimizer& optimizer) {
  const Config own = encode(optimizer);
  if (own.is_null()) return own;
  if (const Config* const source = own.find("keras")) return *source;
  constexpr std::pair<const char*, const char*> kClasses[] = {
      {"SGD", "SGD"}, {"Adagrad", "Adagrad"}, {"Adam", "Adam"}, {"FTRL", "Ftrl"}};
  // The parameters with the same name in Keel and in Keras.
  constexpr const char* kShared[] = {"learning_rate",
                                     "initial_accumulator_value",
                                     "beta_1",
                                     "beta_2",
                                     "epsilon",
                                     "learning_rate_power",
                                     "l1_regularization_strength",
                                     "l2_regularization_strength",
                                     "beta"};
  for (const auto& [ours, theirs] : kClasses) {
    if (own["class_name"] != Config(ours)) continue;
    Config config = Config::dict();
    for (const char* key : kShared) {
      if (const Config* const value = own["config"].find(key)) config.set(key, *value);
    }
    Config out = keras_object("keras.optimizers", theirs, std::move(config));
    out.set(kOwnOptimizer, own);
    return out;
  }
  return own;
}

Config keras_table(const TableConfig& table) {
  Config out = to_config(table);
  const Config initializer = encode(table_initializer(table));
  out.set("initializer",
          keras_object("keras.initializers", initializer["class_name"], initializer["config"]));
  out.set("optimizer", keras_optimizer(table.optimizer));
  // keras_rs does not have this key, so it is only written if set.
  if (!table.dynamic) out.erase("dynamic");
  return out;
}

// Converts Keras's encodings of an optimizer to Keel's.
Config with_our_optimizer(Config table) {
  const Config* optimizer = table.find("optimizer");
  if (optimizer == nullptr) return table;
  if (optimizer->is_string()) {
    table.set("optimizer", encode(EmbeddingOptimizer(optimizer->string())));
  } else if (const Config* own = optimizer->is_dict() ? optimizer->find(kOwnOptimizer) : nullptr) {
    table.set("optimizer", Config(*own));
  } else if (optimizer->is_dict() && optimizer->find("module") != nullptr) {
    table.set("optimizer", Config::dict({{"keras", Config(*optimizer)}}));
  }
  return table;
}

// Encodes a structure of features and collects its tables, each once.
class Encoder {
 public:
  Config structure(const Nest<FeatureConfig>& nest) {
    if (nest.is_leaf()) return feature(nest.leaf());
    if (nest.is_dict()) {
      Config out = Config::dict();
      for (const auto& [key, child] : nest.entries()) out.set(key, structure(child));
      return out;
    }
    Config::List items;
    for (const auto& child : nest.items()) items.push_back(structure(child));
    if (nest.kind() == NestKind::kList) return items;
    return Config::dict({{"class_name", "__tuple__"}, {"items", std::move(items)}});
  }
  Config tables() const {
    Config::List out;
    for (const Table& table : tables_) out.push_back(keras_table(*table));
    return out;
  }

 private:
  Config feature(const FeatureConfig& f) {
    auto it = std::ranges::find(tables_, f.table);
    const int64_t position = it - tables_.begin();
    if (it == tables_.end()) tables_.push_back(f.table);
    return to_config(FeatureFields{.name = f.name,
                                   .table = position,
                                   .input_shape = f.input_shape,
                                   .output_shape = f.output_shape});
  }

  std::vector<Table> tables_;
};

Nest<FeatureConfig> decode_structure(const Config& config, const std::vector<Table>& tables,
                                     int level) {
  using Items = Nest<FeatureConfig>::Items;
  if (level > kMaxDepth) {
    throw ValueError("DistributedEmbedding: feature_configs are nested too deeply");
  }
  const auto children = [&](const Config& list) {
    Items out;
    for (const Config& child : list.items()) {
      out.push_back(decode_structure(child, tables, level + 1));
    }
    return out;
  };
  if (config.is_list()) return Nest<FeatureConfig>::list(children(config));
  if (const Config* name = config.find("name"); name != nullptr && name->is_string()) {
    const auto f = from_config<FeatureFields>(config, "keras_rs FeatureConfig");
    if (f.table < 0 || f.table >= std::ssize(tables)) {
      throw ValueError("DistributedEmbedding: feature '", f.name, "' refers to table ", f.table,
                       ", but there are ", tables.size(), " tables");
    }
    return FeatureConfig{.name = f.name,
                         .table = tables[f.table],
                         .input_shape = f.input_shape,
                         .output_shape = f.output_shape};
  }
  if (const Config* kind = config.find("class_name"); kind != nullptr && kind->is_string()) {
    if (kind->string() != "__tuple__") {
      throw ValueError(
          "DistributedEmbedding: feature_configs must contain features, lists and dicts only, "
          "received ",
          kind->string());
    }
    return Nest<FeatureConfig>::tuple(children(config["items"]));
  }
  Nest<FeatureConfig>::Dict out;
  for (const auto& [key, child] : config.entries()) {
    out.emplace(key, decode_structure(child, tables, level + 1));
  }
  return out;
}

}  // namespace

Initializer table_initializer(const TableConfig& table) {
  if (table.initializer) return *table.initializer;
  return initializers::truncated_normal(0.0,
                                        1.0 / std::sqrt(static_cast<double>(table.embedding_dim)));
}

void check_feature(const std::string& path, const FeatureConfig& feature) {
  const std::string caller = "DistributedEmbedding: feature '" + path + "'";
  if (feature.table == nullptr)
    throw ValueError(caller, ": table is not set; set FeatureConfig::table");
  check_table(caller, *feature.table);
  const Shape& in = feature.input_shape;
  if (in.rank() != 1 && in.rank() != 2) {
    throw ValueError(caller, ": input_shape must be [batch] or [batch, n], received ", in);
  }
  const Shape expected = {in[0], feature.table->embedding_dim};
  if (!compatible(feature.output_shape, expected)) {
    throw ValueError(caller, ": output_shape must be ", expected, ", received ",
                     feature.output_shape);
  }
}

Config encode_feature_configs(const Nest<FeatureConfig>& features) {
  Encoder encoder;
  Config structure = encoder.structure(features);
  return Config::dict({{"feature_configs", std::move(structure)}, {"tables", encoder.tables()}});
}

Nest<FeatureConfig> decode_feature_configs(const Config& features, const Config& tables) {
  std::vector<Table> decoded;
  std::map<std::string, EmbeddingOptimizer> optimizers;
  for (const Config& item : tables.items()) {
    auto table = from_config<TableConfig>(with_our_optimizer(item), "keras_rs TableConfig");
    // Equal optimizers become one object: tables that share an optimizer must share its step
    // counter.
    table.optimizer =
        optimizers.emplace(to_json(encode(table.optimizer)), table.optimizer).first->second;
    decoded.push_back(make_table(std::move(table)));
  }
  return decode_structure(features, decoded, 0);
}

}  // namespace keel::keras_rs
