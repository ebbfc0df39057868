// TextVectorization: maps texts to the indices of their tokens (keras.layers.TextVectorization).
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/preprocessing/lookup.h>

namespace keel {

// The numbers of tokens that n-grams have. Configs keep the form that was given.
class NgramWidths {
 public:
  // Stores 1, 2, ..., n, or a list of widths in the order in which a text's n-grams are listed.
  NgramWidths(int64_t n = 1) : given_{n}, is_list_(false) {}  // NOLINT: implicit
  NgramWidths(std::initializer_list<int64_t> widths) : NgramWidths(std::vector<int64_t>(widths)) {}
  explicit NgramWidths(std::vector<int64_t> widths) : given_(std::move(widths)), is_list_(true) {}

  const std::vector<int64_t>& given() const { return given_; }  // the list, or n alone
  bool is_list() const { return is_list_; }                     // true if given as a list
  // Returns the widths, in their order, that are not greater than this number of tokens.
  std::vector<int64_t> within(int64_t tokens) const;

 private:
  std::vector<int64_t> given_;
  bool is_list_;
};
// Converts to and from an integer or a list of integers.
Config encode(const NgramWidths& widths);
void decode(const Config& config, NgramWidths& widths);

// A function of your own for the option standardize.
using StandardizeFunction = std::function<std::string(const std::string& text)>;
// A function of your own for the option split.
using SplitFunction = std::function<std::vector<std::string>(const std::string& text)>;
// Make TextVectorization accept the name of a function, for example "clean" or "Package>clean".
// Files hold the name, as those of Keras hold the name of a Python function. A function of the same
// name is replaced for layers that are made later. Functions may be called by several threads at
// once. Throw ValueError for an empty function and for a built-in name. Thread safe.
void register_standardize_function(const std::string& name, StandardizeFunction function);
void register_split_function(const std::string& name, SplitFunction function);

// Options of TextVectorization.
struct TextVectorizationOptions {
  std::optional<int64_t> max_tokens = {};  // maximum size for adapt(), including special tokens
  // "lower", "strip_punctuation", both, or the name of a registered function; unset: no change
  std::optional<std::string> standardize = "lower_and_strip_punctuation";
  // "whitespace", "character", or the name of a registered function; unset: texts are tokens
  std::optional<std::string> split = "whitespace";
  std::optional<NgramWidths> ngrams = {};  // unset: tokens are single words or characters
  std::string output_mode = "int";         // or "multi_hot", "count", "tf_idf"
  // For "int": cut or pad all texts to this number of tokens. Unset: pad to the longest of a call.
  std::optional<int64_t> output_sequence_length = {};
  bool pad_to_max_tokens = false;                           // make encodings of depth max_tokens
  std::optional<std::vector<std::string>> vocabulary = {};  // may start with the special tokens
  std::optional<std::vector<double>> idf_weights = {};  // for "tf_idf": one per token of vocabulary
  bool sparse = false;                                  // return encodings as SparseTensors
  bool ragged = false;             // for "int": return a RaggedTensor instead of padding
  std::string encoding = "utf-8";  // no other encoding is supported
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("max_tokens", self.max_tokens);
    field("standardize", self.standardize);
    field("split", self.split);
    field("ngrams", self.ngrams);
    field("output_mode", self.output_mode);
    field("output_sequence_length", self.output_sequence_length);
    field("pad_to_max_tokens", self.pad_to_max_tokens);
    field("sparse", self.sparse);
    field("ragged", self.ragged);
    field("vocabulary", self.vocabulary);
    field("idf_weights", self.idf_weights);
    field("encoding", self.encoding);
  }
};

// Splits texts into tokens and looks them up in a vocabulary, which is given or learned by adapt().
// A text becomes tokens in three steps:
//   1. `standardize`: ASCII letters become lower case, ASCII punctuation is removed.
//   2. `split`: at ASCII whitespace, or after each character of UTF-8. A byte that is not UTF-8
//      becomes U+FFFD.
//   3. `ngrams`: runs of tokens, joined by spaces, in the order of their widths.
//
// For "int" the result is int64: 0 for padding and the empty token, 1 for tokens outside the
// vocabulary, and 2, 3, ... for the vocabulary in order. The other modes are encodings as
// preprocessing.h describes, float32, in which 0 stands for tokens outside the vocabulary.
//
// Input is dense strings. With `split`, they have shape [], [batch] or [..., 1], and the result
// [..., tokens] or [..., depth]. Without it, each string is a token: [batch] counts as [batch, 1],
// the last axis of other shapes is the text, and ragged inputs [batch, (tokens)] are possible, too.
// RaggedTensors and SparseTensors are returned for one batch dimension only.
//
// The config contains the vocabulary.
class TextVectorizationLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "TextVectorization";
  using Options = TextVectorizationOptions;
  // Throws ValueError for
  // - an unknown value of standardize, split or output_mode;
  // - a width of ngrams or an output_sequence_length that is not positive;
  // - output_sequence_length or `ragged` with an encoding, `sparse` with "int";
  // - a vocabulary, max_tokens and weights that StringLookup rejects.
  // Throws NotImplementedError for another encoding than "utf-8".
  explicit TextVectorizationLayer(Options options);
  // Throws NotImplementedError, with its name, for a Python function as standardize or split for
  // which no function is registered.
  static std::shared_ptr<TextVectorizationLayer> from_config(const Config& config);

  // Rebuilds the vocabulary from the tokens of the texts: by descending frequency, then by
  // descending value. Each text is a document of "tf_idf"; see StringLookup. Must not run while
  // other threads call the layer. Throws ValueError for data without tokens.
  void adapt(const TensorLike& texts);
  // Rebuilds the vocabulary from the first `steps` batches, or from all of them.
  void adapt(const data::Dataset& batches, std::optional<int64_t> steps = {});
  // Replaces the vocabulary. Throws the ValueErrors of the constructor.
  void set_vocabulary(std::vector<std::string> vocabulary,
                      const std::optional<std::vector<double>>& idf_weights = {});
  // Returns the tokens in the order of their indices.
  std::vector<std::string> get_vocabulary(bool include_special_tokens = true) const;
  int64_t vocabulary_size() const;  // number of indices, including special tokens
  // For "tf_idf": returns the factor of the count of each index. Empty without a vocabulary.
  std::vector<double> idf_weights() const;
  Config get_config() const override;

 private:
  struct Tokens;

  // Throws RuntimeError without a vocabulary, TypeError for inputs that are not strings, and
  // ValueError for shapes other than those above.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  void check_inputs(const TensorSpec& spec) const;
  // Returns the shape of the inputs without the axis of a text's strings.
  Shape batch_shape(const TensorSpec& spec) const;
  // Returns the number of tokens of each text in the result for "int", if it is always the same.
  std::optional<int64_t> fixed_length(const TensorSpec& spec) const;
  TensorLike symbolic_output(const TensorSpec& spec) const;
  Tokens tokens_of(const TensorLike& texts) const;
  std::vector<std::string> tokens_of_text(std::span<const std::string> text) const;

  const Options options_;
  const std::string caller_;
  const layers::StringLookup lookup_;
  const StandardizeFunction standardize_;  // empty if texts are not changed
  const SplitFunction split_;              // empty if texts are tokens
};

namespace layers {
// A handle to the layer, under Keras's name.
using TextVectorization = LayerHandle<TextVectorizationLayer>;
}  // namespace layers

}  // namespace keel
