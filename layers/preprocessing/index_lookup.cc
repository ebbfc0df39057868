#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>
#include <ranges>

#include <keel/autodiff/ops.h>
#include <keel/framework/base/internal/hash_map.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/internal/math.h>
#include <keel/layers/preprocessing/internal/hash.h>
#include <keel/layers/preprocessing/internal/values.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constexpr int64_t kGrain = 4096;  // words per block

Tensor as_int64(const Tensor& x, const std::string& caller) {
  if (x.dtype() == DType::kInt64) return x;
  if (x.dtype() != DType::kInt32) {
    throw TypeError(caller, ": inputs must be int32 or int64, received ", x.dtype());
  }
  return x.cast(DType::kInt64);
}

// Returns the words of a tensor with element type T.
template <class T>
Tensor as_words(const Tensor& x, const std::string& caller) {
  if constexpr (std::same_as<T, std::string>) {
    if (x.dtype() != DType::kString)
      throw TypeError(caller, ": inputs must be strings, received ", x.dtype());
    return x;
  } else {
    return as_int64(x, caller);
  }
}

// Prepends the mean of the weights as often as needed to get `size` weights.
std::vector<double> with_mean_first(std::vector<double> weights, size_t size) {
  const double count = std::max(1.0, static_cast<double>(weights.size()));
  const double mean = std::accumulate(weights.begin(), weights.end(), 0.0) / count;
  weights.insert(weights.begin(), size - weights.size(), mean);
  return weights;
}

// Multiplies each count by the weight of its word, which is the last number of its index.
Tensor times_weights(const Tensor& counts, const Tensor& indices,
                     const std::vector<double>& weights) {
  Tensor out = counts.clone();
  const auto index = indices.data<int64_t>();
  const int64_t rank = indices.dim(1);
  int64_t i = rank - 1;
  for (float& value : out.mutable_data<float>()) {
    value *= static_cast<float>(weights[index[i]]);
    i += rank;
  }
  return out;
}

}  // namespace

// The vocabulary and the position of each word.
template <class T>
class IndexLookupLayer<T>::Table {
 public:
  // Throws ValueError for a repeated word.
  Table(std::vector<T> all, const std::string& caller) : words(std::move(all)) {
    positions_.reserve(words.size());
    for (size_t i = 0; i < words.size(); ++i) {
      if (!positions_.insert(words[i], static_cast<int64_t>(i)).second) {
        throw ValueError(caller, ": '", words[i], "' is listed twice in the vocabulary");
      }
    }
  }
  // Returns -1 if the word is not in the vocabulary.
  int64_t position(const T& word) const {
    const int64_t* const found = positions_.find(word);
    return found == nullptr ? -1 : *found;
  }

  const std::vector<T> words;

 private:
  HashMap<T, int64_t> positions_;
};

// Counts how often words occur in the data, and in how many of its rows (documents).
template <class T>
class IndexLookupLayer<T>::Counts {
 public:
  struct Count {
    int64_t words = 0, documents = 0;
    int64_t last_document = -1;
  };

  // If `vector_is_one` is true, a vector is one document; otherwise each element is.
  void add(const TensorLike& x, bool vector_is_one, const std::string& caller) {
    const Tensor words = as_words<T>(x.values(), caller);
    const auto values = words.data<T>();
    if (x.layout() == Layout::kRagged) {
      const auto splits = x.ragged().row_splits.template data<int64_t>();
      for (size_t row = 0; row + 1 < splits.size(); ++row) {
        add_document(values.subspan(splits[row], splits[row + 1] - splits[row]));
      }
    } else if (x.layout() == Layout::kSparse) {
      const auto indices = x.sparse().indices.template data<int64_t>();
      const int64_t rank = x.sparse().indices.dim(1);
      for (int64_t i = 0; i < std::ssize(values); ++i) {
        add_word(values[i], documents_ + indices[i * rank]);
      }
      documents_ += x.sparse().dense_shape[0];
    } else {
      const bool one = words.rank() == 0 || (words.rank() == 1 && vector_is_one);
      const int64_t rows = one ? 1 : words.dim(0);
      const int64_t width = rows == 0 ? 0 : words.size() / rows;
      for (int64_t row = 0; row < rows; ++row) add_document(values.subspan(row * width, width));
    }
  }

  const HashMap<T, Count>& of() const { return of_; }
  double inverse_frequency(const T& word) const {
    return math::log1p(static_cast<double>(documents_) /
                       (1.0 + static_cast<double>(of_.find(word)->documents)));
  }

 private:
  void add_word(const T& word, int64_t document) {
    Count& count = of_[word];
    ++count.words;
    count.documents += count.last_document == document ? 0 : 1;
    count.last_document = document;
  }
  void add_document(std::span<const T> words) {
    for (const T& word : words) add_word(word, documents_);
    ++documents_;
  }

  HashMap<T, Count> of_;
  int64_t documents_ = 0;
};

template <class T>
IndexLookupLayer<T>::IndexLookupLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      caller_(std::string(kClassName) + " " + name()),
      mode_(checked_mode()) {
  check_words();
  check_sparse(options_.sparse, mode_, caller_);
  if (options_.num_oov_indices < 0) {
    throw ValueError(caller_, ": num_oov_indices must not be negative, received ",
                     options_.num_oov_indices);
  }
  if (options_.oov_method != "floormod" && options_.oov_method != "farmhash") {
    throw ValueError(caller_, ": oov_method must be 'floormod' or 'farmhash', received '",
                     options_.oov_method, "'");
  }
  if (options_.invert && (options_.num_oov_indices > 1 || mode_ != OutputMode::kInt)) {
    throw ValueError(
        caller_,
        ": invert requires output_mode 'int' and at most one out-of-vocabulary index, received ",
        options_.output_mode, " and ", options_.num_oov_indices);
  }
  if (options_.max_tokens && *options_.max_tokens <= first_word()) {
    throw ValueError(caller_, ": max_tokens must be greater than ", first_word(),
                     ", the number of special tokens, received ", *options_.max_tokens);
  }
  if (options_.pad_to_max_tokens && !options_.max_tokens) {
    throw ValueError(caller_, ": pad_to_max_tokens requires max_tokens");
  }
  if (options_.idf_weights && !options_.vocabulary) {
    throw ValueError(caller_, ": idf_weights require a vocabulary");
  }
  if (options_.vocabulary) set_vocabulary(*options_.vocabulary, options_.idf_weights);
}

template <class T>
void IndexLookupLayer<T>::check_words() const {
  const DType dtype = options_.vocabulary_dtype;
  const bool fits =
      dtype == DTypeOf<T>::kValue || (std::same_as<T, int64_t> && dtype == DType::kInt32);
  if (!fits) {
    throw ValueError(caller_, ": vocabulary_dtype must be int32 or int64, received ", dtype);
  }
  if (options_.encoding != "utf-8") {
    throw NotImplementedError(caller_, ": encoding '", options_.encoding,
                              "' is not supported; convert the words to 'utf-8'");
  }
}

template <class T>
OutputMode IndexLookupLayer<T>::checked_mode() const {
  if (options_.output_mode == "tf_idf") return OutputMode::kTfIdf;
  return output_mode_from_name(options_.output_mode, caller_);
}

template <class T>
int64_t IndexLookupLayer<T>::depth() const {
  return options_.pad_to_max_tokens ? *options_.max_tokens : vocabulary_size();
}

template <class T>
int64_t IndexLookupLayer<T>::first_oov() const {
  return options_.mask_token && mode_ == OutputMode::kInt ? 1 : 0;
}

template <class T>
const typename IndexLookupLayer<T>::Table& IndexLookupLayer<T>::table() const {
  if (table_ == nullptr) {
    throw RuntimeError(caller_, ": the vocabulary is not set; pass one or call adapt()");
  }
  return *table_;
}

template <class T>
void IndexLookupLayer<T>::set_vocabulary(std::vector<T> vocabulary,
                                         const std::optional<std::vector<double>>& idf_weights) {
  if (vocabulary.empty())
    throw ValueError(caller_, ": the vocabulary is empty; pass at least one token");
  if (idf_weights.has_value() != (mode_ == OutputMode::kTfIdf) ||
      (idf_weights && idf_weights->size() != vocabulary.size())) {
    throw ValueError(
        caller_,
        ": output_mode 'tf_idf', and only it, requires one idf_weight for each word of the ",
        "vocabulary, received ", idf_weights ? idf_weights->size() : 0, " for ", vocabulary.size());
  }
  std::vector<T> special;
  if (first_oov() > 0) special.push_back(*options_.mask_token);
  special.insert(special.end(), options_.num_oov_indices, options_.oov_token);
  if (vocabulary.size() >= special.size() &&
      std::equal(special.begin(), special.end(), vocabulary.begin())) {
    vocabulary.erase(vocabulary.begin(), vocabulary.begin() + std::ssize(special));
  }
  const auto size = first_word() + std::ssize(vocabulary);
  if (options_.max_tokens && size > *options_.max_tokens) {
    throw ValueError(caller_, ": the vocabulary has ", size, " tokens, but max_tokens is ",
                     *options_.max_tokens, "; raise max_tokens or pass fewer tokens");
  }
  auto table = std::make_shared<const Table>(std::move(vocabulary), caller_);
  if (options_.mask_token && table->position(*options_.mask_token) >= 0) {
    throw ValueError(caller_,
                     ": the mask token must not be inside the vocabulary; put the special tokens "
                     "first or omit them");
  }
  if (options_.invert && table->position(options_.oov_token) >= 0) {
    throw ValueError(caller_,
                     ": the out-of-vocabulary token must not be inside the vocabulary; put the "
                     "special tokens first or omit them");
  }
  table_ = std::move(table);
  if (idf_weights) idf_ = with_mean_first(*idf_weights, static_cast<size_t>(size));
}

template <class T>
std::vector<T> IndexLookupLayer<T>::get_vocabulary(bool include_special_tokens) const {
  std::vector<T> out;
  if (include_special_tokens) {
    if (first_oov() > 0) out.push_back(*options_.mask_token);
    out.insert(out.end(), options_.num_oov_indices, options_.oov_token);
  }
  if (table_ != nullptr) out.insert(out.end(), table_->words.begin(), table_->words.end());
  return out;
}

template <class T>
int64_t IndexLookupLayer<T>::vocabulary_size() const {
  return first_word() + (table_ == nullptr ? 0 : std::ssize(table_->words));
}

template <class T>
std::vector<double> IndexLookupLayer<T>::idf_weights() const {
  std::vector<double> out = idf_;
  if (!out.empty()) out.resize(depth(), 0);
  return out;
}

template <class T>
Config IndexLookupLayer<T>::get_config() const {
  Options options = options_;
  if (table_ != nullptr) options.vocabulary = table_->words;
  if (table_ != nullptr && mode_ == OutputMode::kTfIdf) {
    options.vocabulary = get_vocabulary();
    options.idf_weights = idf_;
  }
  return to_config(options);
}

template <class T>
int64_t IndexLookupLayer<T>::oov_index(const T& word) const {
  const int64_t count = options_.num_oov_indices;
  if constexpr (std::same_as<T, int64_t>) {
    // The remainder of a negative number is negative in C++; the result must be in [0, count).
    if (options_.oov_method == "floormod") return (word % count + count) % count;
  }
  return hash_bucket(word, count, options_.salt);
}

template <class T>
Tensor IndexLookupLayer<T>::lookup(const Tensor& tensor) const {
  const Tensor words = as_words<T>(tensor, caller_);
  const Table& all = table();
  const int64_t mask = mode_ == OutputMode::kInt ? 0 : -1;
  const auto number = [&](const T& word) {
    if (options_.mask_token && word == *options_.mask_token) return mask;
    if (const int64_t position = all.position(word); position >= 0) return first_word() + position;
    if (options_.num_oov_indices == 0) {
      throw ValueError(
          caller_, ": '", word,
          "' is not in the vocabulary; set num_oov_indices to at least 1 to accept unknown tokens");
    }
    return first_oov() + oov_index(word);
  };
  Tensor out = Tensor::uninitialized(words.shape(), DType::kInt64);
  const T* from = words.data<T>().data();
  int64_t* to = out.mutable_data<int64_t>().data();
  parallel_for(words.size(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = number(from[i]);
  });
  return out;
}

template <class T>
Tensor IndexLookupLayer<T>::words_of(const Tensor& tensor) const {
  const Tensor numbers = as_int64(tensor, caller_);
  const std::vector<T>& words = table().words;
  const auto word = [&](int64_t number) -> const T& {
    if (first_oov() > 0 && number == 0) return *options_.mask_token;
    const int64_t position = number - first_word();
    return position >= 0 && position < std::ssize(words) ? words[position] : options_.oov_token;
  };
  Tensor out = Tensor::uninitialized(numbers.shape(), DTypeOf<T>::kValue);
  std::ranges::transform(numbers.data<int64_t>(), out.mutable_data<T>().begin(), word);
  return options_.vocabulary_dtype == out.dtype() ? out : out.cast(options_.vocabulary_dtype);
}

template <class T>
Tensors IndexLookupLayer<T>::call(const Tensors& inputs, const CallContext&) {
  const TensorLike& x = inputs.leaf();
  if (options_.invert) {
    return map_values(x, options_.vocabulary_dtype,
                      [this](const Tensor& t) { return words_of(t); });
  }
  const auto numbers = map_values(x, DType::kInt64, [this](const Tensor& t) { return lookup(t); });
  if (mode_ != OutputMode::kInt) table();  // throws if the depth is not known yet
  TensorLike encoded = encode_categories(
      numbers, {.mode = mode_, .depth = depth(), .sparse = options_.sparse}, caller_);
  if (mode_ != OutputMode::kTfIdf) return encoded;
  if (options_.sparse) {
    return map_values(encoded, DType::kFloat32, [&](const Tensor& counts) {
      return times_weights(counts, encoded.sparse().indices, idf_weights());
    });
  }
  return encoded.tensor() * Tensor::from(idf_weights(), {depth()}).cast(DType::kFloat32);
}

template <class T>
void IndexLookupLayer<T>::adapt(const TensorLike& data) {
  Counts counts;
  counts.add(data, false, caller_);
  take(counts);
}

template <class T>
void IndexLookupLayer<T>::adapt(const data::Dataset& batches, std::optional<int64_t> steps) {
  Counts counts;
  for_each_batch(batches, steps, caller_,
                 [&](const TensorLike& x) { counts.add(x, true, caller_); });
  take(counts);
}

template <class T>
void IndexLookupLayer<T>::take(const Counts& counts) {
  if (counts.of().empty()) throw ValueError(caller_, ": adapt() received no data");
  std::vector<std::pair<int64_t, T>> sorted;
  for (const auto& [word, count] : counts.of()) {
    const bool special =
        word == options_.oov_token || (options_.mask_token && word == *options_.mask_token);
    if (!special) sorted.emplace_back(count.words, word);
  }
  std::ranges::sort(sorted, std::greater<>());
  std::vector<T> words;
  std::vector<double> weights;
  const int64_t limit = options_.max_tokens ? *options_.max_tokens - first_word()
                                            : static_cast<int64_t>(sorted.size());
  for (auto& [count, word] : sorted) {
    if (std::ssize(words) == limit) break;
    if (mode_ == OutputMode::kTfIdf) weights.push_back(counts.inverse_frequency(word));
    words.push_back(std::move(word));
  }
  table_ = std::make_shared<const Table>(std::move(words), caller_);
  if (mode_ == OutputMode::kTfIdf) {
    idf_ = with_mean_first(std::move(weights), static_cast<size_t>(vocabulary_size()));
  }
}

template <class T>
std::shared_ptr<IndexLookupLayer<T>> IndexLookupLayer<T>::from_config(const Config& config) {
  reject_vocabulary_files(kClassName, config);
  return std::make_shared<IndexLookupLayer<T>>(keel::from_config<Options>(config, kClassName));
}

template <class T>
std::vector<T> read_vocabulary(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(std::move(line));
  }
  if (!in.eof()) throw IoError("read_vocabulary: ", path, " cannot be read");
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if constexpr (std::same_as<T, std::string>) {
    return lines;
  } else {
    std::vector<T> out;
    for (const std::string& line : lines) {
      const char* const end = line.data() + line.size();
      const auto [stop, error] = std::from_chars(line.data(), end, out.emplace_back());
      if (error != std::errc() || stop != end) {
        throw ValueError("read_vocabulary: ", path, " has the word '", line,
                         "', which is not an integer");
      }
    }
    return out;
  }
}

template std::vector<std::string> read_vocabulary(const std::string& path);
template std::vector<int64_t> read_vocabulary(const std::string& path);
template class IndexLookupLayer<std::string>;
template class IndexLookupLayer<int64_t>;

KEEL_REGISTER(Layer, IntegerLookupLayer, .package = "keras",
              .ignored_keys = "vocabulary_size=*, has_input_vocabulary=*")
KEEL_REGISTER(Layer, StringLookupLayer, .package = "keras",
              .ignored_keys = "vocabulary_dtype=*, vocabulary_size=*, has_input_vocabulary=*")

}  // namespace keel
