#include <absl/strings/str_cat.h>
#include <algorithm>
#include <array>

#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

namespace keel::estimator {
namespace {

constexpr char kCaller[] = "EmbeddingConfigSpec";

template <class T>
bool is(const Column& column) {
  return dynamic_cast<const T*>(column.get()) != nullptr;
}

void check_columns(const std::vector<Column>& columns) {
  for (const Column& column : columns) {
    if (is<feature_column::NumericColumn>(column) || is<feature_column::EmbeddingColumn>(column) ||
        is<tpu::TPUEmbeddingColumn>(column)) {
      continue;
    }
    throw TypeError(
        kCaller, ": feature_columns must be numeric or embedding columns, received ",
        column == nullptr ? "none" : absl::StrCat(column->class_name(), " '", column->name(), "'"));
  }
}

void check_parameters(const EmbeddingOptimizer& parameters) {
  constexpr std::array<const char*, 7> kClasses = {"ProximalAdagradParameters",
                                                   "AdagradParameters",
                                                   "AdamParameters",
                                                   "FtrlParameters",
                                                   "StochasticGradientDescentParameters",
                                                   "MomentumParameters",
                                                   "RMSPropParameters"};
  if (!tpu::v1::is_v1_parameters(parameters) ||
      std::ranges::find(kClasses, parameters->class_name) == kClasses.end()) {
    throw ValueError(kCaller,
                     ": optimization_parameters must be AdagradParameters, AdamParameters, "
                     "StochasticGradientDescentParameters, FtrlParameters, "
                     "ProximalAdagradParameters, MomentumParameters or RMSPropParameters, "
                     "received ",
                     parameters ? parameters->class_name : "none");
  }
}

void check_dicts(const EmbeddingConfigSpecOptions& options) {
  for (const auto& [key, feature] : options.feature_to_config_dict) {
    if (!options.table_to_config_dict.contains(feature->table_id)) {
      throw ValueError(kCaller, ": feature '", key, "' refers to table '", feature->table_id,
                       "', which is not in table_to_config_dict; add it");
    }
  }
}

}  // namespace

EmbeddingConfigSpec::EmbeddingConfigSpec(EmbeddingConfigSpecOptions options)
    : options_(std::move(options)) {
  const bool columns = !options_.feature_columns.empty();
  const bool dicts =
      !options_.feature_to_config_dict.empty() && !options_.table_to_config_dict.empty();
  if (columns == dicts) {
    throw ValueError(kCaller,
                     ": requires either feature_columns or both feature_to_config_dict and ",
                     "table_to_config_dict, received ", columns ? "all of them" : "neither");
  }
  if (options_.partition_strategy != "div" && options_.partition_strategy != "mod") {
    throw ValueError(kCaller, ": partition_strategy must be 'div' or 'mod', received '",
                     options_.partition_strategy, "'");
  }
  if (columns) {
    check_columns(options_.feature_columns);
    check_parameters(options_.optimization_parameters);
  }
  if (dicts) check_dicts(options_);
  for (const Column& column : options_.feature_columns) {
    auto embedding = std::dynamic_pointer_cast<const tpu::TPUEmbeddingColumn>(column);
    if (embedding != nullptr && embedding->on_tensor_core()) {
      tensor_core_.push_back(std::move(embedding));
    }
  }
}

tpu::v1::Configs EmbeddingConfigSpec::configs() const {
  if (!options_.feature_columns.empty()) {
    return tpu::v1::get_configs_from_feature_columns(options_.feature_columns);
  }
  return {.table_to_config_dict = options_.table_to_config_dict,
          .feature_to_config_dict = options_.feature_to_config_dict};
}

}  // namespace keel::estimator
