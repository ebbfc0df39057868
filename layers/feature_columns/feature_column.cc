#include <keel/layers/feature_columns/feature_column.h>

#include <absl/strings/str_cat.h>
#include <fstream>
#include <unordered_map>

#include <keel/autodiff/ops.h>
#include <keel/framework/base/file_path_internal.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/preprocessing/internal/hash.h>

namespace keel::feature_column {
namespace {

using Kind = CategoricalColumn::Kind;

// The ids of words. Numbers are stored as their decimal digits.
struct Vocabulary {
  std::unordered_map<std::string, int64_t> ids;
  bool numbers = false;
};

}  // namespace

struct CategoricalColumn::Parts {
  Kind kind = Kind::kIdentity;
  std::string key;
  int64_t num_buckets = 0;
  std::optional<int64_t> default_value = {};
  int64_t num_oov_buckets = 0;
  std::shared_ptr<const Vocabulary> vocabulary = nullptr;
  bool sequence = false;
  std::string weight_key = {};

  std::string name() const {
    return weight_key.empty() ? key : absl::StrCat(key, "_weighted_by_", weight_key);
  }
  int64_t id_of_number(int64_t number) const {
    if (kind == Kind::kHashBucket) return hash_bucket(number, num_buckets);
    if (kind != Kind::kIdentity) return id_of_word(std::to_string(number));
    if (number >= 0 && number < num_buckets) return number;
    if (default_value) return *default_value;
    throw ValueError("categorical_column_with_identity: feature '", key,
                     "': values must be in [0, ", num_buckets, "), received ", number,
                     "; set default_value to accept other values");
  }
  int64_t id_of_word(const std::string& word) const {
    if (kind == Kind::kHashBucket) return hash_bucket(word, num_buckets);
    const auto it = vocabulary->ids.find(word);
    if (it != vocabulary->ids.end()) return it->second;
    if (num_oov_buckets == 0) return default_value.value_or(-1);
    // Unknown words share the ids after the vocabulary by hash.
    return num_buckets - num_oov_buckets + hash_bucket(word, num_oov_buckets);
  }
  bool takes_words() const {
    return kind != Kind::kIdentity && (vocabulary == nullptr || !vocabulary->numbers);
  }
  bool takes_numbers() const {
    return kind == Kind::kHashBucket || kind == Kind::kIdentity || vocabulary->numbers;
  }

  // Returns the int64 ids of all values, in the same shape.
  Tensor ids_of(const Tensor& values) const {
    Tensor out = Tensor::uninitialized(values.shape(), DType::kInt64);
    const std::span<int64_t> ids = out.mutable_data<int64_t>();
    if (values.dtype() == DType::kString && takes_words()) {
      const auto words = values.data<std::string>();
      for (size_t i = 0; i < words.size(); ++i) ids[i] = id_of_word(words[i]);
    } else if (is_integer(values.dtype()) && takes_numbers()) {
      const Tensor numbers = values.cast(DType::kInt64);
      const auto n = numbers.data<int64_t>();
      for (size_t i = 0; i < n.size(); ++i) ids[i] = id_of_number(n[i]);
    } else {
      throw TypeError("categorical column '", key, "': values must be ",
                      takes_words() ? "strings" : "integers", ", received ", values.dtype());
    }
    return out;
  }
};

namespace {

// Returns the present values of a dense tensor of rank 1 or 2 as sparse [batch, n].
SparseTensor without_missing(const std::string& key, const Tensor& values) {
  if (values.rank() < 1 || values.rank() > 2) {
    throw ValueError("categorical column '", key, "': dense values must have rank 1 or 2, ",
                     "received shape ", values.shape());
  }
  const int64_t columns = values.rank() == 2 ? values.dim(1) : 1;
  const Shape shape = {values.dim(0), columns};
  std::vector<int64_t> indices;
  const auto keep = [&](int64_t i) {
    indices.push_back(i / columns);
    indices.push_back(i % columns);
  };
  Tensor kept;
  if (values.dtype() == DType::kString) {
    std::vector<std::string> words;
    for (int64_t i = 0; const std::string& word : values.data<std::string>()) {
      if (!word.empty()) {
        keep(i);
        words.push_back(word);
      }
      ++i;
    }
    kept = Tensor::from(words, {static_cast<int64_t>(words.size())});
  } else {
    std::vector<int64_t> numbers;
    const Tensor as_int64 = values.cast(DType::kInt64);
    for (int64_t i = 0; const int64_t number : as_int64.data<int64_t>()) {
      if (number != -1) {
        keep(i);
        numbers.push_back(number);
      }
      ++i;
    }
    kept = Tensor::from(numbers, {static_cast<int64_t>(numbers.size())});
  }
  return {.indices = Tensor::from(indices, {kept.size(), 2}), .values = kept, .dense_shape = shape};
}

void check_vocabulary(const char* caller, const std::string& key, const VocabularyOptions& options,
                      int64_t words) {
  if (words == 0)
    throw ValueError(caller, ": '", key, "': the vocabulary is empty; pass at least one word");
  if (options.num_oov_buckets < 0) {
    throw ValueError(caller, ": '", key, "': num_oov_buckets must not be negative, received ",
                     options.num_oov_buckets);
  }
  if (options.num_oov_buckets > 0 && options.default_value != -1) {
    throw ValueError(caller, ": '", key,
                     "': received both num_oov_buckets and default_value; set one of them");
  }
  if (options.default_value < -1 || options.default_value >= words) {
    throw ValueError(caller, ": '", key, "': default_value must be an id below ", words,
                     " or -1, received ", options.default_value);
  }
}

Categorical with_vocabulary(const char* caller, Kind kind, const std::string& key,
                            const std::vector<std::string>& words, bool numbers,
                            const VocabularyOptions& options) {
  const auto size = static_cast<int64_t>(words.size());
  check_vocabulary(caller, key, options, size);
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->numbers = numbers;
  for (int64_t i = 0; i < size; ++i) {
    if (!vocabulary->ids.emplace(words[i], i).second) {
      throw ValueError(caller, ": '", key, "': the word '", words[i],
                       "' is listed twice; list each word once");
    }
  }
  return std::make_shared<const CategoricalColumn>(
      CategoricalColumn::Parts{.kind = kind,
                               .key = key,
                               .num_buckets = size + options.num_oov_buckets,
                               .default_value = options.default_value,
                               .num_oov_buckets = options.num_oov_buckets,
                               .vocabulary = std::move(vocabulary)});
}

// Reads the first `count` lines of a file, or all. Accepts \r\n line ends.
std::vector<std::string> read_lines(const std::string& path, std::optional<int64_t> count) {
  constexpr const char* kCaller = "categorical_column_with_vocabulary_file";
  if (count && *count < 1) {
    throw ValueError(kCaller, ": vocabulary_size must be positive, received ", *count);
  }
  std::ifstream file(path);
  if (!file) throw IoError(kCaller, ": ", path, ": cannot be opened: ", internal::system_message());
  std::vector<std::string> out;
  for (std::string line;
       (!count || static_cast<int64_t>(out.size()) < *count) && std::getline(file, line);) {
    if (line.ends_with('\r')) line.pop_back();
    out.push_back(line);
  }
  if (file.bad()) {
    throw IoError(kCaller, ": ", path, ": cannot be read: ", internal::system_message());
  }
  if (count && static_cast<int64_t>(out.size()) < *count) {
    throw ValueError(kCaller, ": ", path, " must have ", *count, " lines, received ", out.size());
  }
  return out;
}

}  // namespace

Tensor NumericColumn::dense_tensor(const TensorLike& feature) const {
  if (feature.layout() != Layout::kDense || feature.tensor().dtype() == DType::kString) {
    throw TypeError("numeric_column '", key(), "': the value must be a dense numeric tensor");
  }
  Tensor x = ops::cast(feature.tensor(), DType::kFloat32);
  const int64_t size = options_.shape.size();
  const bool scalar = x.rank() == 1 && size == 1;
  if (x.rank() == 0 || (!scalar && !compatible(x.shape().slice(1, x.rank()), options_.shape))) {
    throw ValueError("numeric_column '", key(), "': the value must have shape [batch] + ",
                     options_.shape, ", received ", x.shape());
  }
  if (options_.normalizer_fn) x = options_.normalizer_fn(x);
  return x.rank() == 2 ? x : ops::reshape(x, {x.dim(0), size});
}

Config NumericColumn::get_config() const {
  if (options_.normalizer_fn) {
    throw NotImplementedError("numeric_column '", key(),
                              "': normalizer_fn cannot be saved; normalize in the model instead");
  }
  return Config::dict({{"key", key()}, {"shape", encode(options_.shape)}});
}

CategoricalColumn::CategoricalColumn(Parts parts)
    : FeatureColumn(parts.name()), parts_(std::make_shared<const Parts>(std::move(parts))) {}

const char* CategoricalColumn::class_name() const {
  if (!parts_->weight_key.empty()) return "WeightedCategoricalColumn";
  if (parts_->sequence) return "SequenceCategoricalColumn";
  switch (parts_->kind) {
    case Kind::kIdentity:
      return "IdentityCategoricalColumn";
    case Kind::kVocabularyList:
      return "VocabularyListCategoricalColumn";
    case Kind::kVocabularyFile:
      return "VocabularyFileCategoricalColumn";
    case Kind::kHashBucket:
      break;
  }
  return "HashedCategoricalColumn";
}

// Writes the words of a vocabulary, so that the config does not depend on a vocabulary file.
Config CategoricalColumn::get_config() const {
  Config vocabulary;
  if (parts_->vocabulary != nullptr) {
    std::vector<std::string> words(parts_->vocabulary->ids.size());
    for (const auto& [word, id] : parts_->vocabulary->ids) words[id] = word;
    vocabulary = encode(words);
  }
  return Config::dict(
      {{"key", key()},
       {"num_buckets", num_buckets()},
       {"hashed", kind() == Kind::kHashBucket},
       {"vocabulary", std::move(vocabulary)},
       {"integer_words", parts_->vocabulary != nullptr && parts_->vocabulary->numbers},
       {"default_value", encode(parts_->default_value)},
       {"num_oov_buckets", parts_->num_oov_buckets},
       {"sequence", is_sequence()},
       {"weight_key", weight_key()}});
}

CategoricalColumn::Kind CategoricalColumn::kind() const { return parts_->kind; }
const std::string& CategoricalColumn::key() const { return parts_->key; }
const std::string& CategoricalColumn::weight_key() const { return parts_->weight_key; }
int64_t CategoricalColumn::num_buckets() const { return parts_->num_buckets; }
bool CategoricalColumn::is_sequence() const { return parts_->sequence; }

TensorLike CategoricalColumn::transform_feature(const TensorLike& feature) const {
  if (feature.layout() == Layout::kRagged) {
    const RaggedTensor& ragged = feature.ragged();
    return RaggedTensor{parts_->ids_of(ragged.values), ragged.row_splits};
  }
  SparseTensor sparse = feature.layout() == Layout::kSparse
                            ? feature.sparse()
                            : without_missing(key(), feature.tensor());
  sparse.values = parts_->ids_of(sparse.values);
  return sparse;
}

Categorical CategoricalColumn::weighted_by(const std::string& weight_key) const {
  Parts parts = *parts_;
  parts.weight_key = weight_key;
  return std::make_shared<const CategoricalColumn>(std::move(parts));
}

Categorical CategoricalColumn::as_sequence() const {
  Parts parts = *parts_;
  parts.sequence = true;
  return std::make_shared<const CategoricalColumn>(std::move(parts));
}

EmbeddingColumn::EmbeddingColumn(Categorical categorical, int64_t dimension, std::string combiner,
                                 std::optional<Initializer> initializer)
    : FeatureColumn(categorical->name() + "_embedding"),
      categorical_(std::move(categorical)),
      dimension_(dimension),
      combiner_(std::move(combiner)),
      initializer_(std::move(initializer)) {}

Config EmbeddingColumn::get_config() const {
  return Config::dict({{"categorical_column", categorical_->get_config()},
                       {"dimension", dimension_},
                       {"combiner", combiner_},
                       {"initializer", encode(initializer_)}});
}

std::shared_ptr<const NumericColumn> numeric_column(const std::string& key,
                                                    NumericOptions options) {
  if (!options.shape.fully_defined() || options.shape.size() < 1) {
    throw ValueError("numeric_column '", key, "': shape must be fully defined and not empty, ",
                     "received ", options.shape);
  }
  return std::make_shared<const NumericColumn>(key, std::move(options));
}

Categorical categorical_column_with_identity(const std::string& key, int64_t num_buckets,
                                             std::optional<int64_t> default_value) {
  if (num_buckets < 1) {
    throw ValueError("categorical_column_with_identity: '", key,
                     "': num_buckets must be positive, received ", num_buckets);
  }
  if (default_value && (*default_value < 0 || *default_value >= num_buckets)) {
    throw ValueError("categorical_column_with_identity: '", key, "': default_value must be in [0, ",
                     num_buckets, "), received ", *default_value);
  }
  return std::make_shared<const CategoricalColumn>(CategoricalColumn::Parts{
      .key = key, .num_buckets = num_buckets, .default_value = default_value});
}

Categorical categorical_column_with_vocabulary_list(const std::string& key,
                                                    const std::vector<std::string>& words,
                                                    const VocabularyOptions& options) {
  return with_vocabulary("categorical_column_with_vocabulary_list", Kind::kVocabularyList, key,
                         words, false, options);
}

Categorical categorical_column_with_vocabulary_list(const std::string& key,
                                                    const std::vector<int64_t>& numbers,
                                                    const VocabularyOptions& options) {
  std::vector<std::string> words;
  for (const int64_t number : numbers) words.push_back(std::to_string(number));
  return with_vocabulary("categorical_column_with_vocabulary_list", Kind::kVocabularyList, key,
                         words, true, options);
}

Categorical categorical_column_with_vocabulary_file(const std::string& key,
                                                    const std::string& vocabulary_file,
                                                    std::optional<int64_t> vocabulary_size,
                                                    const VocabularyOptions& options) {
  return with_vocabulary("categorical_column_with_vocabulary_file", Kind::kVocabularyFile, key,
                         read_lines(vocabulary_file, vocabulary_size), false, options);
}

Categorical categorical_column_with_hash_bucket(const std::string& key, int64_t hash_bucket_size) {
  if (hash_bucket_size < 1) {
    throw ValueError("categorical_column_with_hash_bucket: '", key,
                     "': hash_bucket_size must be positive, received ", hash_bucket_size);
  }
  return std::make_shared<const CategoricalColumn>(CategoricalColumn::Parts{
      .kind = Kind::kHashBucket, .key = key, .num_buckets = hash_bucket_size});
}

Categorical weighted_categorical_column(const Column& categorical_column,
                                        const std::string& weight_feature_key) {
  const Categorical column = require_categorical(categorical_column, "weighted_categorical_column");
  if (weight_feature_key.empty() || !column->weight_key().empty()) {
    throw ValueError("weighted_categorical_column: '", column->name(),
                     weight_feature_key.empty() ? "': weight_feature_key must not be empty"
                                                : "': the column is already weighted");
  }
  return column->weighted_by(weight_feature_key);
}

Categorical sequence_categorical_column_with_identity(const std::string& key, int64_t num_buckets,
                                                      std::optional<int64_t> default_value) {
  return categorical_column_with_identity(key, num_buckets, default_value)->as_sequence();
}

Categorical sequence_categorical_column_with_vocabulary_list(const std::string& key,
                                                             const std::vector<std::string>& words,
                                                             const VocabularyOptions& options) {
  return categorical_column_with_vocabulary_list(key, words, options)->as_sequence();
}

Categorical sequence_categorical_column_with_vocabulary_file(const std::string& key,
                                                             const std::string& vocabulary_file,
                                                             std::optional<int64_t> vocabulary_size,
                                                             const VocabularyOptions& options) {
  return categorical_column_with_vocabulary_file(key, vocabulary_file, vocabulary_size, options)
      ->as_sequence();
}

std::shared_ptr<const EmbeddingColumn> embedding_column(const Column& categorical_column,
                                                        int64_t dimension,
                                                        EmbeddingColumnOptions options) {
  const Categorical column = require_categorical(categorical_column, "embedding_column");
  if (dimension < 1) {
    throw ValueError("embedding_column: '", column->name(),
                     "': dimension must be positive, received ", dimension);
  }
  combiner_from_name(options.combiner);
  return std::make_shared<const EmbeddingColumn>(column, dimension, std::move(options.combiner),
                                                 std::move(options.initializer));
}

Categorical require_categorical(const Column& column, const char* caller) {
  auto categorical = std::dynamic_pointer_cast<const CategoricalColumn>(column);
  if (categorical == nullptr) {
    throw TypeError(
        caller, ": the column must be categorical, received ",
        column == nullptr ? "none" : absl::StrCat(column->class_name(), " '", column->name(), "'"));
  }
  return categorical;
}

}  // namespace keel::feature_column
