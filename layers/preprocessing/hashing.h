// Hashing: bins for strings and integers without a vocabulary (keras.layers.Hashing).
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "layers/layer.h"
#include "layers/preprocessing/values.h"

namespace keel {

// A word, given as a string or an integer.
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

// The key of the hash: two integers, or one used twice.
struct HashingSalt {
  HashingSalt(int64_t both = 0) : first(both), second(both) {}  // NOLINT: implicit
  HashingSalt(int64_t a, int64_t b) : first(a), second(b) {}
  int64_t first, second;
};
Config encode(const HashingSalt& salt);  // a list of two
void decode(const Config& config, HashingSalt& salt);

struct HashingOptions {
  int64_t num_bins = 0;                        // required, > 0; bin 0 of the mask included
  std::optional<HashingWord> mask_value = {};  // goes to bin 0, and nothing else does
  std::optional<HashingSalt> salt = {};
  std::string output_mode = "int";  // or one_hot, multi_hot, count
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

// The hash of each word modulo the number of bins. Input: strings, int32 or int64 of any shape and
// layout; integers are hashed as their decimal digits. Output int64 of the same shape and row
// splits, or float32 encodings (encode_categories). There is no gradient.
// The hash is SipHash-2-4 with the salt as its key, which gives the bins of Keras. Without a salt
// the key is 0, and the bins differ from Keras's, whose hash is another one then.
class HashingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Hashing";
  using Options = HashingOptions;
  // ValueError unless there is a bin for words, and for an unknown output_mode.
  explicit HashingLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor bins(const Tensor& words) const;  // TypeError for another dtype

  const Options options_;
  const OutputMode mode_;
};

namespace layers {
using Hashing = LayerHandle<HashingLayer>;
}

}  // namespace keel
