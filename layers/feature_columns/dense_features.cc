#include <keel/layers/feature_columns/dense_features.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/layers/embedding/tables/internal/host_lookup.h>
#include <keel/layers/feature_columns/tpu_embedding_column.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

using feature_column::Column;
using feature_column::EmbeddingColumn;
using feature_column::FeatureColumn;
using feature_column::NumericColumn;
using tpu::TPUEmbeddingColumn;

template <class T>
const T* as(const FeatureColumn& column) {
  return dynamic_cast<const T*>(&column);
}

// Returns the columns sorted by name. Throws without columns and for a null column.
std::vector<Column> sorted(std::vector<Column> columns, const std::string& caller) {
  if (columns.empty())
    throw ValueError(caller, ": requires at least one column in feature_columns, received none");
  for (const Column& column : columns) {
    if (column == nullptr) throw TypeError(caller, ": feature_columns must not contain null");
  }
  std::ranges::stable_sort(columns, {}, [](const Column& column) { return column->name(); });
  return columns;
}

const TensorLike& feature(const Tensors::Dict& features, const std::string& key,
                          const std::string& caller) {
  const auto it = features.find(key);
  if (it == features.end()) {
    throw ValueError(caller, ": the batch has no feature '", key, "'; add it to the dataset");
  }
  return it->second.leaf();
}

// Returns the activations that the estimator stored under the column's key.
const Tensor& activation(const TPUEmbeddingColumn& column, const Tensors::Dict& features,
                         const std::string& caller) {
  const TensorLike& found = feature(features, column.feature_key(), caller);
  if (found.layout() != Layout::kDense || !is_floating(found.tensor().dtype())) {
    throw TypeError(caller, ": feature '", column.feature_key(), "' of column '", column.name(),
                    "' must hold activations, received ids; train the model with TPUEstimator, "
                    "which looks up ids");
  }
  return found.tensor();
}

// A table that is a variable of this layer.
struct OwnTable {
  int64_t rows, dim;
  std::string combiner;
  std::optional<Initializer> initializer;
};

// Returns the table of an ordinary column or of one on a tensor core; unset for other columns.
std::optional<OwnTable> own_table(const FeatureColumn& column) {
  if (const auto* c = as<EmbeddingColumn>(column)) {
    return OwnTable{c->categorical_column()->num_buckets(), c->dimension(), c->combiner(),
                    c->initializer()};
  }
  const auto* c = as<TPUEmbeddingColumn>(column);
  if (c == nullptr || !c->on_tensor_core()) return {};
  return OwnTable{c->vocabulary_size(), c->dimension(), c->options().combiner,
                  c->options().initializer};
}

// Looks up the ids of an ordinary column, pooled on the host.
Tensor look_up(const EmbeddingColumn& column, const Variable& table, const Tensors::Dict& features,
               const std::string& caller) {
  const feature_column::CategoricalColumn& categorical = *column.categorical_column();
  const TensorLike ids =
      categorical.transform_feature(feature(features, categorical.key(), caller));
  std::optional<Nest<std::optional<TensorLike>>> weights;
  if (!categorical.weight_key().empty()) {
    weights = std::optional<TensorLike>(feature(features, categorical.weight_key(), caller));
  }
  const Table table_config = make_table({.vocabulary_size = categorical.num_buckets(),
                                         .dim = column.dimension(),
                                         .combiner = column.combiner()});
  // Unknown words have the id -1.
  const FeatureConfig config = {.table = table_config, .id_policy = IdPolicy::ignore()};
  return host_embedding_lookup(
             Tensors(ids), weights, config,
             [&](const Table&, const Tensor& rows) { return table.read_rows(rows); })
      .tensor();
}

}  // namespace

DenseFeaturesLayer::DenseFeaturesLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)),
      columns_(sorted(options_.feature_columns, absl::StrCat(kClassName, " ", name()))) {
  for (const Column& column : columns_) {
    const auto* embedding = as<EmbeddingColumn>(*column);
    const auto* tpu_embedding = as<TPUEmbeddingColumn>(*column);
    if (embedding == nullptr && tpu_embedding == nullptr && !as<NumericColumn>(*column)) {
      throw TypeError(kClassName, " ", name(),
                      ": columns must be numeric or embedding columns, received ",
                      column->class_name(), " '", column->name(), "'");
    }
    if ((embedding != nullptr && embedding->categorical_column()->is_sequence()) ||
        (tpu_embedding != nullptr && tpu_embedding->is_sequence())) {
      throw ValueError(kClassName, " ", name(), ": '", column->name(),
                       "' is a sequence column; use SequenceFeatures for it");
    }
  }
}

void DenseFeaturesLayer::build_weights(const Specs&) {
  for (const Column& column : columns_) {
    const std::optional<OwnTable> table = own_table(*column);
    if (!table) continue;
    const Table config = make_table({.vocabulary_size = table->rows,
                                     .dim = table->dim,
                                     .initializer = table->initializer,
                                     .combiner = table->combiner});
    tables_[column->name()] = add_weight({.name = column->name() + "/embedding_weights",
                                          .shape = {table->rows, table->dim},
                                          .initializer = table_initializer(*config)});
  }
}

Tensor DenseFeaturesLayer::part_of(const FeatureColumn& column,
                                   const Tensors::Dict& features) const {
  const std::string caller = absl::StrCat(kClassName, " ", name());
  if (const auto* numeric = as<NumericColumn>(column)) {
    return numeric->dense_tensor(feature(features, numeric->key(), caller));
  }
  if (const std::optional<OwnTable> table = own_table(column)) {
    const auto* ordinary = as<EmbeddingColumn>(column);
    const std::string& key = ordinary != nullptr ? ordinary->categorical_column()->key()
                                                 : as<TPUEmbeddingColumn>(column)->feature_key();
    const TensorLike& ids = feature(features, key, caller);
    if (ids.is_symbolic()) return Tensor::symbolic({.shape = {ids.spec().shape[0], table->dim}});
    const Variable& variable = tables_.at(column.name());
    if (ordinary != nullptr) return look_up(*ordinary, variable, features, caller);
    return tpu::tensor_core_lookup(*as<TPUEmbeddingColumn>(column), variable.read(), ids);
  }
  const auto* embedding = as<TPUEmbeddingColumn>(column);
  const Tensor& found = activation(*embedding, features, caller);
  if (!compatible(found.shape(), {kUnknown, embedding->dimension()})) {
    throw ValueError(caller, ": activations of '", column.name(), "' must have shape [batch, ",
                     embedding->dimension(), "], received ", found.shape());
  }
  return found;
}

Tensors DenseFeaturesLayer::call(const Tensors& inputs, const CallContext&) {
  std::vector<Tensor> parts;
  for (const Column& column : columns_) parts.push_back(part_of(*column, inputs.entries()));
  return parts.size() == 1 ? parts[0] : ops::concat(parts, -1);
}

SequenceFeaturesLayer::SequenceFeaturesLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)),
      columns_(sorted(options_.feature_columns, absl::StrCat(kClassName, " ", name()))) {
  int64_t length = 0;
  for (const Column& column : columns_) {
    const auto* sequence = as<TPUEmbeddingColumn>(*column);
    if (sequence == nullptr || !sequence->is_sequence()) {
      throw ValueError(
          kClassName, " ", name(), ": '", column->name(),
          "' is not a sequence column of tpu::embedding_column; use DenseFeatures for it");
    }
    if (length == 0) length = sequence->options().max_sequence_length;
    if (sequence->options().max_sequence_length != length) {
      throw ValueError(kClassName, " ", name(),
                       ": all columns must have the same max_sequence_length, but that of '",
                       column->name(), "' is not ", length);
    }
  }
}

Tensors SequenceFeaturesLayer::call(const Tensors& inputs, const CallContext&) {
  const std::string caller = absl::StrCat(kClassName, " ", name());
  std::vector<Tensor> parts;
  for (const Column& column : columns_) {
    parts.push_back(activation(*as<TPUEmbeddingColumn>(*column), inputs.entries(), caller));
  }
  const std::string lengths_key =
      as<TPUEmbeddingColumn>(*columns_[0])->sequence_length_feature_name();
  const TensorLike& lengths = feature(inputs.entries(), lengths_key, caller);
  return Tensors::tuple({parts.size() == 1 ? parts[0] : ops::concat(parts, -1), lengths.tensor()});
}

KEEL_REGISTER(Layer, DenseFeaturesLayer)
KEEL_REGISTER(Layer, SequenceFeaturesLayer)

}  // namespace keel
