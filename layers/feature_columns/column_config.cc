#include <keel/layers/feature_columns/dense_features.h>
#include <keel/layers/feature_columns/tpu_embedding_column.h>

namespace keel::feature_column {
namespace {

struct NumericFields {
  std::string key = {};
  Shape shape = {1};
  static constexpr void fields(auto& self, auto&& field) {
    field("key", self.key);
    field("shape", self.shape);
  }
};

struct CategoricalFields {
  std::string key = {};
  int64_t num_buckets = 0;
  bool hashed = false;
  std::optional<std::vector<std::string>> vocabulary = {};
  bool integer_words = false;
  std::optional<int64_t> default_value = {};
  int64_t num_oov_buckets = 0;
  bool sequence = false;
  std::string weight_key = {};
  static constexpr void fields(auto& self, auto&& field) {
    field("key", self.key);
    field("num_buckets", self.num_buckets);
    field("hashed", self.hashed);
    field("vocabulary", self.vocabulary);
    field("integer_words", self.integer_words);
    field("default_value", self.default_value);
    field("num_oov_buckets", self.num_oov_buckets);
    field("sequence", self.sequence);
    field("weight_key", self.weight_key);
  }
};

struct EmbeddingFields {
  Categorical categorical_column = nullptr;
  int64_t dimension = 0;
  std::string combiner = "mean";
  std::optional<Initializer> initializer = {};
  static constexpr void fields(auto& self, auto&& field) {
    field("categorical_column", self.categorical_column);
    field("dimension", self.dimension);
    field("combiner", self.combiner);
    field("initializer", self.initializer);
  }
};

struct TPUFields : EmbeddingFields {
  int64_t max_sequence_length = 0;
  std::string embedding_lookup_device = {};
  std::optional<int64_t> tensor_core_width = {};
  bool use_safe_embedding_lookup = true;
  std::string shared_embedding_collection_name = {};
  static constexpr void fields(auto& self, auto&& field) {
    EmbeddingFields::fields(self, field);
    field("max_sequence_length", self.max_sequence_length);
    field("embedding_lookup_device", self.embedding_lookup_device);
    field("tensor_core_width", self.tensor_core_width);
    field("use_safe_embedding_lookup", self.use_safe_embedding_lookup);
    field("shared_embedding_collection_name", self.shared_embedding_collection_name);
  }
};

// Creates a vocabulary column. Integer words are saved as decimal text.
Categorical with_vocabulary(const CategoricalFields& f) {
  const VocabularyOptions options = {.default_value = f.default_value.value_or(-1),
                                     .num_oov_buckets = f.num_oov_buckets};
  if (!f.integer_words) {
    return categorical_column_with_vocabulary_list(f.key, *f.vocabulary, options);
  }
  std::vector<int64_t> numbers;
  for (const std::string& word : *f.vocabulary) {
    numbers.push_back(parse_json(word).integer());
  }
  return categorical_column_with_vocabulary_list(f.key, numbers, options);
}

Column tpu_column_of(const Config& config) {
  const auto f = from_config<TPUFields>(config, "TPUEmbeddingColumn");
  if (f.shared_embedding_collection_name.empty()) {
    return tpu::embedding_column(f.categorical_column, f.dimension,
                                 {.combiner = f.combiner,
                                  .initializer = f.initializer,
                                  .max_sequence_length = f.max_sequence_length,
                                  .embedding_lookup_device = f.embedding_lookup_device,
                                  .tensor_core_width = f.tensor_core_width,
                                  .use_safe_embedding_lookup = f.use_safe_embedding_lookup});
  }
  return tpu::shared_embedding_columns(
      {f.categorical_column}, f.dimension,
      {.combiner = f.combiner,
       .initializer = f.initializer,
       .shared_embedding_collection_name = f.shared_embedding_collection_name,
       .max_sequence_lengths = {f.max_sequence_length},
       .embedding_lookup_device = f.embedding_lookup_device,
       .tensor_core_width = f.tensor_core_width,
       .use_safe_embedding_lookup = f.use_safe_embedding_lookup})[0];
}

}  // namespace

Config encode(const Column& column) {
  return Config::dict({{"class_name", column->class_name()}, {"config", column->get_config()}});
}

void decode(const Config& config, Categorical& column) {
  const auto f = from_config<CategoricalFields>(config, "CategoricalColumn");
  if (f.hashed) {
    column = categorical_column_with_hash_bucket(f.key, f.num_buckets);
  } else if (f.vocabulary) {
    column = with_vocabulary(f);
  } else {
    column = categorical_column_with_identity(f.key, f.num_buckets, f.default_value);
  }
  if (f.sequence) column = column->as_sequence();
  if (!f.weight_key.empty()) column = weighted_categorical_column(column, f.weight_key);
}

void decode(const Config& config, Column& column) {
  const std::string& name = config["class_name"].string();
  const Config& parts = config["config"];
  if (name == "NumericColumn") {
    const auto f = from_config<NumericFields>(parts, name);
    column = numeric_column(f.key, {.shape = f.shape});
  } else if (name == "EmbeddingColumn") {
    const auto f = from_config<EmbeddingFields>(parts, name);
    column = embedding_column(f.categorical_column, f.dimension,
                              {.combiner = f.combiner, .initializer = f.initializer});
  } else if (name == "TPUEmbeddingColumn" || name == "TPUSharedEmbeddingColumn") {
    column = tpu_column_of(parts);
  } else if (name.ends_with("CategoricalColumn")) {
    Categorical categorical;
    decode(parts, categorical);
    column = categorical;
  } else {
    throw ValueError("feature column: unknown class '", name, "'; use a class of this library");
  }
}

}  // namespace keel::feature_column
