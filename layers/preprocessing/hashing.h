// Hashing: maps strings and integers to bins without a vocabulary (keras.layers.Hashing).
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/hash.h>
#include <keel/layers/preprocessing/values.h>

namespace keel {

// A word, either a string or an integer.
class HashingWord {
 public:
  HashingWord(const char* word = "") : value_(std::string(word)) {}  // NOLINT: implicit
  HashingWord(std::string word) : value_(std::move(word)) {}         // NOLINT: implicit
  HashingWord(int64_t word) : value_(word) {}                        // NOLINT: implicit
  const std::variant<std::string, int64_t>& value() const { return value_; }

 private:
  std::variant<std::string, int64_t> value_;
};
Config encode(const HashingWord& word);
void decode(const Config& config, HashingWord& word);

// Options of Hashing.
struct HashingOptions {
  int64_t num_bins = 0;                        // required, > 0; includes bin 0 of the mask value
  std::optional<HashingWord> mask_value = {};  // mapped to bin 0; no other word is
  std::optional<HashingSalt> salt = {};
  std::string output_mode = "int";  // or "one_hot", "multi_hot", "count"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_bins", self.num_bins);
    field("salt", self.salt);
    field("mask_value", self.mask_value);
    field("output_mode", self.output_mode);
  }
};

// Computes the hash of each word modulo the number of bins, with Keras's results: FarmHash64
// without a salt, SipHash-2-4 with one. Input is strings or numbers of any shape and layout.
// Integers are hashed as their decimal digits; floats are truncated to integers first. Output is
// int64 with the same shape and row splits, or float32 encodings (encode_categories). There is no
// gradient. In the config the dtype is int64 for output_mode "int", because Keras accepts no other.
class HashingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Hashing";
  using Options = HashingOptions;
  // Throws ValueError if no bin is left for words, and for an unknown output_mode.
  explicit HashingLayer(Options options);
  Config get_config() const override;

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor bins(const Tensor& words) const;  // throws TypeError for another dtype

  const Options options_;
  const OutputMode mode_;
};

namespace layers {
using Hashing = LayerHandle<HashingLayer>;
}

}  // namespace keel
