#include <keel/layers/feature_columns/tpu_embedding_column.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <array>

#include <keel/autodiff/ops.h>

namespace keel::tpu {
namespace {

void check_device(const std::string& caller, const EmbeddingColumnOptions& options, bool sequence) {
  constexpr std::array<const char*, 4> kDevices = {"", "cpu", "tpu_tensor_core",
                                                   "tpu_embedding_core"};
  const std::string& device = options.embedding_lookup_device;
  if (std::ranges::find(kDevices, device) == kDevices.end()) {
    throw ValueError(caller,
                     ": embedding_lookup_device must be 'cpu', 'tpu_tensor_core' or "
                     "'tpu_embedding_core', received '",
                     device, "'");
  }
  if (device != "tpu_tensor_core") return;
  if (!options.tensor_core_width || *options.tensor_core_width < 1) {
    throw ValueError(caller, ": a lookup on a tensor core requires a positive tensor_core_width");
  }
  if (sequence) {
    throw ValueError(caller,
                     ": a tensor core does not support sequence columns; use "
                     "embedding_lookup_device tpu_embedding_core");
  }
}

// Checks the arguments of both kinds of columns and creates a column. An empty `collection` gives a
// column with its own table.
TPUColumn make_column(const char* function, const Column& column, int64_t dimension,
                      EmbeddingColumnOptions options, std::string collection) {
  const Categorical categorical = feature_column::require_categorical(column, function);
  const std::string caller = absl::StrCat(function, ": '", categorical->name(), "'");
  if (categorical->kind() == feature_column::CategoricalColumn::Kind::kHashBucket) {
    throw TypeError(caller,
                    ": an embedding engine supports identity and vocabulary columns, received ",
                    categorical->class_name(), "; pass one of them");
  }
  if (dimension < 1) throw ValueError(caller, ": dimension must be positive, received ", dimension);
  if (categorical->is_sequence() && options.max_sequence_length < 1) {
    throw ValueError(caller,
                     ": a sequence column requires a positive max_sequence_length, received ",
                     options.max_sequence_length);
  }
  if (!categorical->is_sequence() && options.max_sequence_length != 0) {
    throw ValueError(
        caller, ": max_sequence_length must be 0 for a column that is not a sequence, received ",
        options.max_sequence_length);
  }
  check_device(caller, options, categorical->is_sequence());
  return std::make_shared<const TPUEmbeddingColumn>(categorical, dimension, std::move(options),
                                                    std::move(collection));
}

std::string default_collection_name(const std::vector<Column>& columns) {
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column->name());
  std::ranges::sort(names);
  std::string out;
  for (const std::string& name : names) out += name + "_";
  return out + "shared_embedding";
}

// The first `width` known ids of each row, padded with zeros, and the mask of the ids.
struct Padded {
  Tensor ids;   // int64 [batch * width]
  Tensor mask;  // float32 [batch, width, 1]
};

Padded pad(const TensorLike& ids, int64_t width) {
  const Tensor values = ids.values().cast(DType::kInt64);
  const int64_t batch = ids.spec().shape[0];
  Padded out = {.ids = Tensor::zeros({batch * width}, DType::kInt64),
                .mask = Tensor::zeros({batch, width, 1})};
  const auto to = out.ids.mutable_data<int64_t>();
  const auto mask = out.mask.mutable_data<float>();
  std::vector<int64_t> filled(batch);
  const auto append = [&](int64_t row, int64_t id) {
    if (id == -1 || filled[row] == width) return;
    const int64_t at = row * width + filled[row]++;
    to[at] = id;
    mask[at] = 1;
  };
  const auto from = values.data<int64_t>();
  const auto n = static_cast<int64_t>(from.size());
  if (ids.layout() == Layout::kSparse) {
    const auto indices = ids.sparse().indices.data<int64_t>();
    const int64_t rank = ids.sparse().dense_shape.rank();
    for (int64_t i = 0; i < n; ++i) append(indices[i * rank], from[i]);
  } else if (ids.layout() == Layout::kRagged) {
    const auto splits = ids.ragged().row_splits.data<int64_t>();
    for (int64_t row = 0; row < batch; ++row) {
      for (int64_t i = splits[row]; i < splits[row + 1]; ++i) append(row, from[i]);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) append(i / (n / batch), from[i]);
  }
  return out;
}

}  // namespace

TPUEmbeddingColumn::TPUEmbeddingColumn(Categorical categorical, int64_t dimension,
                                       EmbeddingColumnOptions options,
                                       std::string shared_embedding_collection_name)
    : FeatureColumn(categorical->name() + (shared_embedding_collection_name.empty()
                                               ? "_embedding"
                                               : "_shared_embedding")),
      categorical_(std::move(categorical)),
      dimension_(dimension),
      options_(std::move(options)),
      collection_(std::move(shared_embedding_collection_name)) {}

Config TPUEmbeddingColumn::get_config() const {
  return Config::dict({{"categorical_column", categorical_->get_config()},
                       {"dimension", dimension_},
                       {"combiner", options_.combiner},
                       {"initializer", encode(options_.initializer)},
                       {"max_sequence_length", options_.max_sequence_length},
                       {"embedding_lookup_device", options_.embedding_lookup_device},
                       {"tensor_core_width", encode(options_.tensor_core_width)},
                       {"use_safe_embedding_lookup", options_.use_safe_embedding_lookup},
                       {"shared_embedding_collection_name", collection_}});
}

std::string TPUEmbeddingColumn::checkpoint_name(const std::string& scope) const {
  return is_shared() ? collection_ : absl::StrCat(scope, "/", name(), "/embedding_weights");
}

TPUColumn embedding_column(const Column& categorical_column, int64_t dimension,
                           EmbeddingColumnOptions options) {
  return make_column("tpu.embedding_column", categorical_column, dimension, std::move(options), "");
}

std::vector<TPUColumn> shared_embedding_columns(const std::vector<Column>& categorical_columns,
                                                int64_t dimension,
                                                SharedEmbeddingColumnsOptions options) {
  constexpr const char* kCaller = "tpu.shared_embedding_columns";
  if (categorical_columns.empty())
    throw ValueError(kCaller, ": requires at least one column, received none");
  int64_t buckets = 0;
  for (const Column& column : categorical_columns) {
    const Categorical categorical = feature_column::require_categorical(column, kCaller);
    if (buckets == 0) buckets = categorical->num_buckets();
    if (categorical->num_buckets() != buckets) {
      throw ValueError(kCaller, ": columns of one table must have the same num_buckets, ", buckets,
                       ", received ", categorical->num_buckets(), " for '", categorical->name(),
                       "'");
    }
  }
  std::vector<int64_t> lengths = options.max_sequence_lengths;
  if (lengths.empty()) lengths.resize(categorical_columns.size());
  if (lengths.size() != categorical_columns.size()) {
    throw ValueError(kCaller, ": ", categorical_columns.size(),
                     " columns require one max_sequence_length each, received ", lengths.size());
  }
  std::string collection = options.shared_embedding_collection_name;
  if (collection.empty()) collection = default_collection_name(categorical_columns);
  std::vector<TPUColumn> out;
  for (size_t i = 0; i < categorical_columns.size(); ++i) {
    out.push_back(make_column(kCaller, categorical_columns[i], dimension,
                              {.combiner = options.combiner,
                               .initializer = options.initializer,
                               .max_sequence_length = lengths[i],
                               .learning_rate_fn = options.learning_rate_fn,
                               .embedding_lookup_device = options.embedding_lookup_device,
                               .tensor_core_width = options.tensor_core_width,
                               .use_safe_embedding_lookup = options.use_safe_embedding_lookup},
                              collection));
  }
  return out;
}

SplitColumns split_sequence_columns(const std::vector<Column>& columns) {
  SplitColumns out;
  for (const Column& column : columns) {
    const auto* embedding = dynamic_cast<const TPUEmbeddingColumn*>(column.get());
    if (embedding == nullptr) {
      throw TypeError(
          "tpu.split_sequence_columns: columns must be created by tpu.embedding_column, received ",
          column == nullptr ? "none" : column->class_name());
    }
    (embedding->is_sequence() ? out.sequence_columns : out.non_sequence_columns).push_back(column);
  }
  return out;
}

void check_lookup_device(const TPUEmbeddingColumn& column, bool training) {
  const std::string& device = column.options().embedding_lookup_device;
  if (device == (training ? "cpu" : "tpu_embedding_core")) {
    throw ValueError("tpu.embedding_column: '", column.name(), "': embedding_lookup_device '",
                     device, "' does not support ", training ? "training" : "inference",
                     " on an accelerator");
  }
}

Tensor tensor_core_lookup(const TPUEmbeddingColumn& column, const Tensor& table,
                          const TensorLike& ids) {
  const std::string& combiner = column.options().combiner;
  if (combiner != "sum" && combiner != "mean") {
    throw ValueError("tpu.embedding_column: '", column.name(),
                     "': a tensor core combines by sum or mean, received '", combiner,
                     "'; use embedding_lookup_device tpu_embedding_core for other combiners");
  }
  const int64_t width = column.options().tensor_core_width.value();
  const Padded padded = pad(ids, width);
  const Tensor rows =
      ops::reshape(ops::gather(table, padded.ids), {padded.mask.dim(0), width, table.dim(1)});
  const Tensor sum = ops::sum(rows * padded.mask, {1});
  return combiner == "sum" ? sum : sum / ops::sum(padded.mask, {1});
}

}  // namespace keel::tpu
