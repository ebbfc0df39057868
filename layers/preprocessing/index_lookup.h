// StringLookup and IntegerLookup: numbers for the words of a vocabulary (keras.layers).
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/hash.h>
#include <keel/layers/preprocessing/values.h>

namespace keel {

template <class T>
T default_oov_token() {
  if constexpr (std::same_as<T, std::string>) {
    return "[UNK]";
  } else {
    return -1;
  }
}

template <class T>
struct LookupOptions {
  std::optional<int64_t> max_tokens = {};  // most that adapt() keeps, special ones included
  int64_t num_oov_indices = 1;             // numbers for words that are not in the vocabulary
  std::optional<T> mask_token = {};        // gets number 0, or in encodings none
  T oov_token = default_oov_token<T>();    // what invert gives for unknown numbers
  std::optional<std::vector<T>> vocabulary = {};        // may begin with the special tokens
  bool invert = false;                                  // from numbers to words
  std::string output_mode = "int";                      // or one_hot, multi_hot, count, tf_idf
  std::optional<std::vector<double>> idf_weights = {};  // for "tf_idf": one for each word given
  bool pad_to_max_tokens = false;  // encodings of max_tokens numbers, however many there are
  // How integers that are not in the vocabulary share num_oov_indices: "floormod", their remainder,
  // or "farmhash", the hash of their digits. Strings are always hashed.
  std::string oov_method = "floormod";
  std::optional<HashingSalt> salt = {};  // hashes by SipHash with this key in place of FarmHash64
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("invert", self.invert);
    field("max_tokens", self.max_tokens);
    field("num_oov_indices", self.num_oov_indices);
    field("oov_token", self.oov_token);
    field("mask_token", self.mask_token);
    field("output_mode", self.output_mode);
    field("pad_to_max_tokens", self.pad_to_max_tokens);
    field("idf_weights", self.idf_weights);
    field("vocabulary", self.vocabulary);
    field("oov_method", self.oov_method);
    field("salt", self.salt);
  }
};

// Numbers, in "int" mode: 0 for the mask token if there is one, then num_oov_indices for unknown
// words, then the vocabulary in order. Unknown words share several numbers by hash as in Keras:
// FarmHash64, or SipHash-2-4 with a salt; integers by remainder unless oov_method says otherwise.
// Other modes count from 0 without the mask and encode as
// encode_categories says; "tf_idf" multiplies counts by the inverse document frequencies of the
// words, for unknown ones by the mean of these.
// Input: words of any shape and layout, strings or int32 and int64; output int64 of the same
// shape and row splits, or float32 encodings. With invert the other way round.
// The config holds the vocabulary. There is no gradient.
template <class T>
class IndexLookupLayer final : public Layer {
 public:
  static constexpr const char* kClassName =
      std::same_as<T, std::string> ? "StringLookup" : "IntegerLookup";
  using Options = LookupOptions<T>;
  // ValueError for a vocabulary that is empty, repeats a word or exceeds max_tokens, for invert
  // with an encoding or several numbers for unknown words, for another oov_method, for idf_weights
  // that are not as many as the words or not for tf_idf, tf_idf with words but no weights, and
  // pad_to_max_tokens without max_tokens.
  explicit IndexLookupLayer(Options options);

  // Counts the words of the data, special ones left out, and makes the vocabulary anew: by
  // descending frequency, equally frequent ones by descending value, as Keras sorts them. For
  // tf_idf a row is a document, as is each element of a vector, or a vector that is a batch of a
  // dataset: a word in d of n documents has the weight log(1 + n / (1 + d)). Not while other
  // threads call the layer. ValueError for no data.
  void adapt(const TensorLike& data);
  void adapt(const data::Dataset& batches);
  // ValueError as above.
  void set_vocabulary(std::vector<T> vocabulary,
                      const std::optional<std::vector<double>>& idf_weights = {});
  std::vector<T> get_vocabulary(bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;  // how many numbers there are
  // For tf_idf: what the count of each number is multiplied by. Empty without a vocabulary.
  std::vector<double> idf_weights() const;
  Config get_config() const override;

 private:
  class Table;
  class Counts;

  // RuntimeError without a vocabulary; ValueError for a word that is not in it if
  // num_oov_indices is 0; TypeError for another dtype of words or numbers.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor lookup(const Tensor& tensor) const;    // of words
  Tensor words_of(const Tensor& tensor) const;  // of numbers
  int64_t oov_index(const T& word) const;       // in [0, num_oov_indices)
  void take(const Counts& counts);
  OutputMode checked_mode() const;
  int64_t depth() const;  // of encodings
  int64_t first_oov() const;
  int64_t first_word() const { return first_oov() + options_.num_oov_indices; }
  const Table& table() const;

  const Options options_;
  const std::string caller_;
  const OutputMode mode_;
  std::shared_ptr<const Table> table_;
  std::vector<double> idf_;  // for tf_idf: of each number
};

extern template class IndexLookupLayer<std::string>;
extern template class IndexLookupLayer<int64_t>;

}  // namespace keel
