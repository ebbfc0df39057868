#include <keel/layers/embedding/v1/tpu_embedding_v1_config.h>

#include <absl/strings/str_cat.h>

#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel::tpu::v1 {
namespace {

TableConfig table_of(const TPUEmbeddingColumn& column) {
  return TableOptions{.vocabulary_size = column.vocabulary_size(),
                      .dimension = column.dimension(),
                      .initializer = column.options().initializer,
                      .combiner = column.options().combiner,
                      .learning_rate_fn = column.options().learning_rate_fn};
}

}  // namespace

TableConfig::TableConfig(TableOptions options) : options_(std::move(options)) {
  constexpr const char* kCaller = "tpu.v1.TableConfig";
  if (options_.vocabulary_size < 1) {
    throw ValueError(kCaller, ": vocabulary_size must be positive, received ",
                     options_.vocabulary_size);
  }
  if (options_.dimension < 1) {
    throw ValueError(kCaller, ": dimension must be positive, received ", options_.dimension);
  }
  if (options_.combiner) combiner_from_name(*options_.combiner);
  if (options_.learning_rate && options_.learning_rate_fn) {
    throw ValueError(kCaller,
                     ": received both learning_rate and learning_rate_fn; set one of them");
  }
  if (options_.optimization_parameters && !is_v1_parameters(options_.optimization_parameters)) {
    throw ValueError(kCaller,
                     ": optimization_parameters must be of a class such as AdagradParameters, ",
                     "received ", options_.optimization_parameters->class_name);
  }
}

FeatureConfig::FeatureConfig(FeatureOptions options) : options_(std::move(options)) {
  if (options_.max_sequence_length < 0) {
    throw ValueError("tpu.v1.FeatureConfig: max_sequence_length must not be negative, received ",
                     options_.max_sequence_length);
  }
}

Configs get_configs_from_feature_columns(const std::vector<Column>& columns) {
  constexpr const char* kCaller = "get_configs_from_feature_columns";
  Configs out;
  for (const Column& column : columns) {
    if (dynamic_cast<const feature_column::NumericColumn*>(column.get()) != nullptr) continue;
    const auto* embedding = dynamic_cast<const TPUEmbeddingColumn*>(column.get());
    if (embedding == nullptr) {
      throw TypeError(kCaller, ": columns must be created by tpu.embedding_column, received ",
                      column == nullptr
                          ? "none"
                          : absl::StrCat(column->class_name(), " '", column->name(), "'"));
    }
    if (embedding->on_tensor_core()) continue;
    const FeatureConfig feature =
        FeatureOptions{.table_id = embedding->table_name(),
                       .max_sequence_length = embedding->options().max_sequence_length,
                       .weight_key = embedding->weight_key()};
    if (!out.feature_to_config_dict.emplace(embedding->feature_key(), feature).second) {
      throw ValueError(
          kCaller, ": feature '", embedding->feature_key(),
          "' is used by two embedding columns; share the column by tpu.shared_embedding_columns");
    }
    // The last column on a shared table supplies its config.
    out.table_to_config_dict.insert_or_assign(embedding->table_name(), table_of(*embedding));
  }
  return out;
}

bool is_v1_parameters(const EmbeddingOptimizer& optimizer) {
  return optimizer && optimizer->v1_parameters;
}

std::vector<std::string> slot_names(const EmbeddingOptimizer& optimizer,
                                    const std::string& variable) {
  std::vector<std::string> out;
  for (const std::string& suffix : optimizer->v1_slot_suffixes) {
    out.push_back(absl::StrCat(variable, "/", suffix));
  }
  return out;
}

}  // namespace keel::tpu::v1
