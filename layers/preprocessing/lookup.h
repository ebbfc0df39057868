// StringLookup and IntegerLookup: map the words of a vocabulary to indices
// (keras.layers.StringLookup, keras.layers.IntegerLookup).
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/hashing.h>

namespace keel {

namespace data {
class Dataset;
}

// Returns Keras's token for out-of-vocabulary words: "[UNK]" or -1.
template <class T>
T default_oov_token() {
  if constexpr (std::same_as<T, std::string>) {
    return "[UNK]";
  } else {
    return -1;
  }
}

// Returns the words of a text file, one per line, for options that Keras also accepts as a path:
//   layers::StringLookup({.vocabulary = read_vocabulary<std::string>("words.txt")})
// Empty lines at the end are dropped. Throws IoError if the file cannot be read, and ValueError for
// a line that is not an integer if T is int64_t.
template <class T>
std::vector<T> read_vocabulary(const std::string& path);
extern template std::vector<std::string> read_vocabulary(const std::string& path);
extern template std::vector<int64_t> read_vocabulary(const std::string& path);

// Options of StringLookup and IntegerLookup.
template <class T>
struct LookupOptions {
  std::optional<int64_t> max_tokens = {};  // maximum size for adapt(), including special tokens
  int64_t num_oov_indices = 1;             // number of indices for words outside the vocabulary
  std::optional<T> mask_token = {};        // maps to index 0; ignored in encodings
  T oov_token = default_oov_token<T>();    // result of `invert` for unknown indices
  std::optional<std::vector<T>> vocabulary = {};  // may start with the special tokens
  bool invert = false;                            // map indices to words
  std::string output_mode = "int";                // or "one_hot", "multi_hot", "count", "tf_idf"
  std::optional<std::vector<double>> idf_weights = {};  // for "tf_idf": one per given word
  // Make encodings of depth max_tokens regardless of the vocabulary size.
  bool pad_to_max_tokens = false;
  bool sparse = false;  // return encodings as SparseTensors
  // Selects how integers outside the vocabulary are distributed over num_oov_indices: "floormod" by
  // their remainder, "farmhash" by the hash of their digits. Strings are always hashed.
  std::string oov_method = "floormod";
  std::optional<HashingSalt> salt = {};  // hash with SipHash and this key instead of FarmHash64
  // For IntegerLookup: the dtype of words that `invert` returns, int64 or int32.
  DType vocabulary_dtype = DTypeOf<T>::kValue;
  std::string encoding = "utf-8";  // for StringLookup; no other encoding is supported
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  // Keras's layer for the other type of words has this option.
  static constexpr const char* kUnsaved[] = {std::same_as<T, int64_t> ? "encoding"
                                                                      : "vocabulary_dtype"};
  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("invert", self.invert);
    field("max_tokens", self.max_tokens);
    field("num_oov_indices", self.num_oov_indices);
    field("oov_token", self.oov_token);
    field("mask_token", self.mask_token);
    field("output_mode", self.output_mode);
    field("sparse", self.sparse);
    field("pad_to_max_tokens", self.pad_to_max_tokens);
    if constexpr (std::same_as<T, int64_t>) field("vocabulary_dtype", self.vocabulary_dtype);
    field("idf_weights", self.idf_weights);
    field("vocabulary", self.vocabulary);
    field("oov_method", self.oov_method);
    field("salt", self.salt);
    if constexpr (std::same_as<T, std::string>) field("encoding", self.encoding);
  }
};

// Maps words to indices. In mode "int", index 0 is the mask token if there is one, followed by
// num_oov_indices indices for unknown words and the vocabulary in order. Unknown words are
// distributed over several indices by hash as in Keras: FarmHash64, or SipHash-2-4 with a salt;
// integers by remainder unless oov_method is "farmhash".
//
// Other modes count from 0 without the mask token and encode as preprocessing.h describes. "tf_idf"
// multiplies counts by the inverse document frequencies of the words; unknown words have
// the mean of these.
//
// Input is words of any shape and layout, strings or int32 and int64. With `invert`, input and
// output are exchanged. The config contains the vocabulary.
template <class T>
class IndexLookupLayer final : public Layer {
 public:
  // The class name in configs and files.
  static constexpr const char* kClassName =
      std::same_as<T, std::string> ? "StringLookup" : "IntegerLookup";
  using Options = LookupOptions<T>;  // of the constructor
  // Throws ValueError for
  // - a vocabulary that is empty, repeats a word or exceeds max_tokens;
  // - `invert` with an encoding or with several indices for unknown words;
  // - an unknown oov_method;
  // - idf_weights whose number differs from the number of words, or that are given without
  //   "tf_idf";
  // - "tf_idf" with a vocabulary but without idf_weights;
  // - pad_to_max_tokens without max_tokens;
  // - `sparse` with output_mode "int";
  // - another vocabulary_dtype than int32 and int64.
  // Throws NotImplementedError for another encoding than "utf-8".
  explicit IndexLookupLayer(Options options);
  // Throws ValueError, with the path, if the config names a file in place of a vocabulary. As in
  // Keras's safe mode, a model must not make the program read other files.
  static std::shared_ptr<IndexLookupLayer> from_config(const Config& config);

  // Rebuilds the vocabulary from the words of the data, without special tokens: by descending
  // frequency, then by descending value, as Keras sorts them. For "tf_idf", a document is a row, or
  // each element of a vector; a vector that is a batch of a dataset is one document. A word in d of
  // n documents has the weight log(1 + n / (1 + d)). Must not run while other threads call the
  // layer. Throws ValueError for empty data. The second form reads the first `steps` batches, or
  // all of them.
  void adapt(const TensorLike& data);
  void adapt(const data::Dataset& batches, std::optional<int64_t> steps = {});
  // Replaces the vocabulary. Throws the ValueErrors of the constructor.
  void set_vocabulary(std::vector<T> vocabulary,
                      const std::optional<std::vector<double>>& idf_weights = {});
  // Returns the words in the order of their indices.
  std::vector<T> get_vocabulary(bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;  // number of indices, including special tokens
  // For "tf_idf": returns the factor of the count of each index. Empty without a vocabulary.
  std::vector<double> idf_weights() const;
  Config get_config() const override;

 private:
  class Table;
  class Counts;

  // Throws RuntimeError without a vocabulary, ValueError for a word outside the vocabulary if
  // num_oov_indices is 0, and TypeError for another dtype of words or indices.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor lookup(const Tensor& tensor) const;    // of words
  Tensor words_of(const Tensor& tensor) const;  // of indices
  int64_t oov_index(const T& word) const;       // in [0, num_oov_indices)
  void take(const Counts& counts);
  OutputMode checked_mode() const;
  void check_words() const;  // options on the dtype and encoding of words
  int64_t depth() const;     // depth of encodings
  int64_t first_oov() const;
  int64_t first_word() const { return first_oov() + options_.num_oov_indices; }
  const Table& table() const;

  const Options options_;
  const std::string caller_;
  const OutputMode mode_;
  std::shared_ptr<const Table> table_;
  std::vector<double> idf_;  // for "tf_idf": factor of each index
};

extern template class IndexLookupLayer<std::string>;
extern template class IndexLookupLayer<int64_t>;

using StringLookupOptions = LookupOptions<std::string>;   // words are strings
using StringLookupLayer = IndexLookupLayer<std::string>;  // words are strings
using IntegerLookupOptions = LookupOptions<int64_t>;      // words are integers
using IntegerLookupLayer = IndexLookupLayer<int64_t>;     // words are integers

namespace layers {
// Handles to the layers, under Keras's names.
using StringLookup = LayerHandle<StringLookupLayer>;
using IntegerLookup = LayerHandle<IntegerLookupLayer>;
}  // namespace layers

}  // namespace keel
