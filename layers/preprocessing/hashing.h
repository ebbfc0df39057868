// Hashing and HashedCrossing: map values, or combinations of values, to bins without a vocabulary.
// preprocessing.h explains output_mode and `sparse`.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

enum class OutputMode;

// The key of a salted hash.
struct HashingSalt {
  // Uses two integers, or one integer twice.
  HashingSalt(int64_t both = 0) : first(both), second(both) {}  // NOLINT: implicit
  HashingSalt(int64_t a, int64_t b) : first(a), second(b) {}
  int64_t first;   // first half of the key
  int64_t second;  // second half of the key
};
// Converts a salt to and from a list of two integers.
Config encode(const HashingSalt& salt);
void decode(const Config& config, HashingSalt& salt);

// A word, either a string or an integer.
class HashingWord {
 public:
  // Stores the word.
  HashingWord(const char* word = "") : value_(std::string(word)) {}  // NOLINT: implicit
  HashingWord(std::string word) : value_(std::move(word)) {}         // NOLINT: implicit
  HashingWord(int64_t word) : value_(word) {}                        // NOLINT: implicit
  const std::variant<std::string, int64_t>& value() const { return value_; }

 private:
  std::variant<std::string, int64_t> value_;
};
// Converts a word to and from a string or an integer.
Config encode(const HashingWord& word);
void decode(const Config& config, HashingWord& word);

// Options of Hashing.
struct HashingOptions {
  int64_t num_bins = 0;                        // required, > 0; includes bin 0 of the mask value
  std::optional<HashingWord> mask_value = {};  // mapped to bin 0; no other word is
  std::optional<HashingSalt> salt = {};        // unset: hash with FarmHash64
  std::string output_mode = "int";             // or "one_hot", "multi_hot", "count"
  bool sparse = false;                         // return encodings as SparseTensors
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_bins", self.num_bins);
    field("salt", self.salt);
    field("mask_value", self.mask_value);
    field("output_mode", self.output_mode);
    field("sparse", self.sparse);
  }
};

// Maps strings and integers to bins without a vocabulary (keras.layers.Hashing): computes the hash
// of each word modulo the number of bins, with Keras's results. The hash is FarmHash64 without a
// salt and SipHash-2-4 with one. Input is strings, integers, which are hashed as their decimal
// digits, or floats, which are truncated to integers first, of any shape and layout. In the config
// the dtype is int64 for output_mode "int", as Keras requires. Throws TypeError for other inputs.
class HashingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Hashing";
  using Options = HashingOptions;
  // Throws ValueError if no bin is left for words, for an unknown output_mode, and for `sparse`
  // with output_mode "int".
  explicit HashingLayer(Options options);
  Config get_config() const override;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor bins(const Tensor& words) const;

  const Options options_;
  const OutputMode mode_;
};

// Options of HashedCrossing.
struct HashedCrossingOptions {
  int64_t num_bins = 0;             // required, > 0
  std::string output_mode = "int";  // or "one_hot"
  bool sparse = false;              // return encodings as SparseTensors
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_bins", self.num_bins);
    field("output_mode", self.output_mode);
    field("sparse", self.sparse);
  }
};

// Maps combinations of features to bins (keras.layers.HashedCrossing), with Keras's results: joins
// the features of a sample in their order by FarmHash's fingerprints, and takes the result modulo
// the number of bins. Integers are joined as they are, strings by their FarmHash64.
//
// Input is a list of at least two dense tensors of strings, int32 or int64, all with the same shape
// (), [batch] or [batch, 1]. Output is int64 with the same shape or, for "one_hot", float32
// [batch, num_bins], for inputs of shape () [num_bins]. In the config the dtype is int64 for
// output_mode "int", as Keras requires. Calls throw ValueError for other numbers and shapes of
// inputs, and TypeError for other layouts and dtypes.
class HashedCrossingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "HashedCrossing";
  using Options = HashedCrossingOptions;
  // Throws ValueError unless num_bins > 0, for an unknown output_mode, and for `sparse` with
  // output_mode "int".
  explicit HashedCrossingLayer(Options options);
  Config get_config() const override;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  std::vector<Tensor> checked(const Tensors& inputs) const;

  const Options options_;
  const OutputMode mode_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Hashing = LayerHandle<HashingLayer>;
using HashedCrossing = LayerHandle<HashedCrossingLayer>;
}  // namespace layers

}  // namespace keel
