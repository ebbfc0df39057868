#include <keel/layers/embedding/tables/table_config.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>

namespace keel {
namespace {

void check_not_negative(const TableConfig& t, const char* option, double value) {
  if (std::isfinite(value) && value >= 0) return;
  throw ValueError("TableConfig ", t.name, ": ", option,
                   " must be finite and not negative, received ", value);
}

// Throws NotImplementedError for options that tables with dynamic ids do not support.
void check_dynamic_options(const TableConfig& t) {
  const auto refuse = [&t](const char* option) {
    throw NotImplementedError("TableConfig ", t.name,
                              ": a table with dynamic ids does not support ", option,
                              " yet; leave it unset or use a vocabulary");
  };
  if (t.combiner == "max" && t.dynamic->not_admitted.kind == NotAdmitted::Kind::kIgnore) {
    // An engine takes the maximum of looked up positions, none of which can be left out.
    refuse("the combiner max with NotAdmitted::ignore()");
  }
}

void check(const TableConfig& t) {
  if (t.dynamic && t.vocabulary_size != 0) {
    throw ValueError("TableConfig ", t.name,
                     ": vocabulary_size and dynamic exclude each other; received vocabulary_size ",
                     t.vocabulary_size);
  }
  if (!t.dynamic && t.vocabulary_size < 1) {
    throw ValueError("TableConfig ", t.name, ": vocabulary_size must be positive, received ",
                     t.vocabulary_size);
  }
  if (t.dim < 1)
    throw ValueError("TableConfig ", t.name, ": dim must be positive, received ", t.dim);
  lookup_combiner(t);
  storage_from_name(t.storage_dtype);
  check_not_negative(t, "l2", t.l2);
  check_not_negative(t, "max_norm", t.max_norm);
  if (t.dynamic) {
    check_dynamic_options(t);
    check(*t.dynamic, t.name);
    check_row_initializers(*t.dynamic, table_initializer(t), t.name);
  }
}

void check(const std::string& path, const FeatureConfig& feature) {
  if (feature.table == nullptr)
    throw ValueError("FeatureConfig '", path, "': table is not set; set FeatureConfig::table");
  if (feature.max_sequence_length < 0) {
    throw ValueError("FeatureConfig '", path,
                     "': max_sequence_length must not be negative, received ",
                     feature.max_sequence_length);
  }
  const IdPolicy& policy = feature.id_policy;
  if (policy.kind == IdPolicy::Kind::kDefaultRow && feature.table->dynamic) {
    throw ValueError("FeatureConfig '", path, "': table '", feature.table->name,
                     "' has dynamic ids and no default row for invalid ids; use ignore() or "
                     "error(), or DynamicVocabulary::not_admitted");
  }
  if (policy.kind == IdPolicy::Kind::kDefaultRow &&
      (policy.default_row < 0 || policy.default_row >= feature.table->vocabulary_size)) {
    throw ValueError("FeatureConfig '", path, "': the default row of invalid ids must be in [0, ",
                     feature.table->vocabulary_size, "), received ", policy.default_row);
  }
}

}  // namespace

QuantizationConfig::QuantizationConfig(int64_t num_buckets_, double lower_, double upper_)
    : num_buckets(num_buckets_), lower(lower_), upper(upper_) {
  if (num_buckets < 2) {
    throw ValueError("QuantizationConfig: num_buckets must be 2 or more, received ", num_buckets);
  }
  if (!(lower < upper)) {
    throw ValueError("QuantizationConfig: lower must be below upper, received ", lower, " and ",
                     upper);
  }
}

Config encode(const IdPolicy& policy) {
  switch (policy.kind) {
    case IdPolicy::Kind::kDefault:
      return "default";
    case IdPolicy::Kind::kError:
      return "error";
    case IdPolicy::Kind::kIgnore:
      return "ignore";
    case IdPolicy::Kind::kDefaultRow:
      break;
  }
  return policy.default_row;
}

void decode(const Config& config, IdPolicy& policy) {
  if (config.is_integer()) {
    policy = IdPolicy::use_row(config.integer());
    return;
  }
  const std::string& name = config.string();
  if (name == "default") {
    policy = {};
  } else if (name == "error") {
    policy = IdPolicy::error();
  } else if (name == "ignore") {
    policy = IdPolicy::ignore();
  } else {
    throw ValueError("IdPolicy: must be default, error, ignore or a row number, received '", name,
                     "'");
  }
}

Config encode(const QuantizationConfig& quantization) {
  return Config::dict({{"num_buckets", quantization.num_buckets},
                       {"lower", quantization.lower},
                       {"upper", quantization.upper}});
}

void decode(const Config& config, std::optional<QuantizationConfig>& quantization) {
  quantization.reset();
  if (config.is_null()) return;
  config_internal::reject_unknown_keys(config, {"num_buckets", "lower", "upper"},
                                       "QuantizationConfig");
  quantization.emplace(config["num_buckets"].integer(), config["lower"].number(),
                       config["upper"].number());
}

kernels::Combiner combiner_from_name(const std::string& name) {
  if (name == "mean") return kernels::Combiner::kMean;
  if (name == "sum") return kernels::Combiner::kSum;
  if (name == "sqrtn") return kernels::Combiner::kSqrtN;
  throw ValueError("TableConfig: combiner must be mean, sum or sqrtn, received '", name, "'");
}

kernels::Combiner lookup_combiner(const TableConfig& table) {
  if (table.combiner == "max") return kernels::Combiner::kSum;
  if (table.combiner == "mean" || table.combiner == "sum" || table.combiner == "sqrtn") {
    return combiner_from_name(table.combiner);
  }
  throw ValueError("TableConfig: combiner must be mean, sum, sqrtn or max, received '",
                   table.combiner, "'");
}

kernels::StorageType storage_from_name(const std::string& name) {
  if (name == "float32") return kernels::StorageType::kFloat32;
  if (name == "bfloat16") return kernels::StorageType::kBFloat16;
  if (name == "float16") return kernels::StorageType::kFloat16;
  throw ValueError("TableConfig: storage_dtype must be float32, bfloat16 or float16, received '",
                   name, "'");
}

const TableOptimizerState& optimizer_of(const TableConfig& table) {
  static const TableOptimizerState kFrozen = {
      .class_name = "",
      .rule = std::make_shared<EngineRule>(std::make_shared<SGDRule>(), std::vector<std::string>()),
      .learning_rate = 0.0};
  return table.trainable ? *table.optimizer : kFrozen;
}

std::vector<Slot> slots_of(const TableConfig& table) {
  if (table.trainable && !table.optimizer) return {};
  return optimizer_of(table).rule->slots();
}

Table make_table(TableConfig config) {
  check(config);
  return std::make_shared<TableConfig>(std::move(config));
}

Initializer table_initializer(const TableConfig& table) {
  if (table.initializer) return *table.initializer;
  return initializers::truncated_normal(0.0, 1.0 / std::sqrt(static_cast<double>(table.dim)));
}

int TableSet::find(const Table& table) const {
  const auto it = std::ranges::find_if(
      tables, [&](const Entry& entry) { return entry.original == table || entry.own == table; });
  return it == tables.end() ? -1 : static_cast<int>(it - tables.begin());
}

Nest<FeatureConfig> TableSet::on_own_tables(const Nest<FeatureConfig>& features,
                                            const std::string& caller) const {
  const std::vector<std::string> paths = flatten_paths(features);
  size_t i = 0;
  return map_structure(features, [&](FeatureConfig feature) {
    const std::string& path = paths[i++];
    const int found = find(feature.table);
    if (found < 0) {
      throw ValueError(
          caller, ": feature '", path, "' uses table '",
          feature.table == nullptr ? "" : feature.table->name,
          "', which is not a table of the layer; use the table object of its feature_config");
    }
    feature.table = tables[found].own;
    return feature;
  });
}

TableSet collect_tables(const Nest<FeatureConfig>& features, const EmbeddingOptimizer& optimizer) {
  TableSet out;
  for_each_leaf(features, [&](const std::string& path, const FeatureConfig& feature) {
    check(path, feature);
    if (out.find(feature.table) < 0) {
      check(*feature.table);
      out.tables.push_back(
          {.original = feature.table, .own = std::make_shared<TableConfig>(*feature.table)});
    }
  });
  std::set<std::string> names;
  for (size_t i = 0; i < out.tables.size(); ++i) {
    TableConfig& config = *out.tables[i].own;
    // These are copies: the user's objects are not modified.
    if (!config.optimizer) config.optimizer = optimizer;
    if (config.dynamic) check_dynamic_options(config);
    if (config.name.empty()) config.name = "table_" + std::to_string(i);
    if (!names.insert(config.name).second) {
      throw ValueError("TPUEmbedding: two tables are named '", config.name,
                       "'; rename one of them");
    }
  }
  return out;
}

int find_dynamic(const TableSet& tables, const Table& table, const std::string& owner) {
  const int found = table == nullptr ? -1 : tables.find(table);
  if (found >= 0 && tables.tables[found].own->dynamic) return found;
  throw ValueError("dynamic_table: table '", table == nullptr ? "" : table->name, "' ",
                   found < 0 ? "is not a table of " : "has a vocabulary and no dynamic ids in ",
                   owner, "; pass a table of it with TableConfig::dynamic");
}

void reject_dynamic(const TableSet& tables, const std::string& caller) {
  for (const TableSet::Entry& entry : tables.tables) {
    if (!entry.own->dynamic) continue;
    throw NotImplementedError(caller, ": table '", entry.own->name,
                              "' has dynamic ids, which this kind of table does not support; use "
                              "TPUEmbedding under a TPUStrategy with an engine");
  }
}

TableSet adopt_tables(const Nest<FeatureConfig>& features, const EmbeddingOptimizer& optimizer) {
  TableSet out = collect_tables(features, optimizer);
  // All checks have passed, so the user's objects can be modified.
  for (TableSet::Entry& entry : out.tables) {
    entry.original->optimizer = entry.own->optimizer;
    entry.original->name = entry.own->name;
    entry.own = entry.original;
  }
  return out;
}

}  // namespace keel

template class keel::Nest<keel::FeatureConfig>;
template std::vector<keel::Nest<keel::FeatureConfig>>::~vector();
template std::vector<keel::Nest<keel::FeatureConfig>>::vector(
    const std::vector<keel::Nest<keel::FeatureConfig>>& other);
template std::vector<keel::FeatureConfig>::~vector();
template std::vector<keel::FeatureConfig>::vector(const std::vector<keel::FeatureConfig>& other);
template class keel::Nest<std::optional<keel::TensorLike>>;
template std::vector<keel::Nest<std::optional<keel::TensorLike>>>::~vector();
template std::vector<keel::Nest<std::optional<keel::TensorLike>>>::vector(
    const std::vector<keel::Nest<std::optional<keel::TensorLike>>>& other);
template std::vector<std::optional<keel::TensorLike>>::~vector();
template std::vector<std::optional<keel::TensorLike>>::vector(
    const std::vector<std::optional<keel::TensorLike>>& other);
