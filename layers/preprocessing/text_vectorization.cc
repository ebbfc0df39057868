#include <keel/layers/preprocessing/text_vectorization.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>

#include <keel/autodiff/operation.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/preprocessing/internal/text.h>
#include <keel/layers/preprocessing/internal/values.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constexpr int64_t kTextsPerBlock = 64;

// Functions by name. Thread safe.
template <class Function>
class FunctionTable {
 public:
  explicit FunctionTable(std::map<std::string, Function> builtin)
      : builtin_(builtin), all_(std::move(builtin)) {}

  void add(const std::string& name, Function function, const char* caller) {
    if (!function || builtin_.contains(name)) {
      throw ValueError(caller, ": '", name, "' needs a function, and must not be a built-in name");
    }
    const std::lock_guard lock(mutex_);
    all_[name] = std::move(function);
  }
  bool contains(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return all_.contains(name);
  }
  bool is_builtin(const std::string& name) const { return builtin_.contains(name); }
  // Returns the function of a value of `option`. Throws ValueError for an unknown name.
  Function get(const std::optional<std::string>& name, const char* option,
               const std::string& caller) const {
    if (!name) return {};
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(*name);
    if (found != all_.end()) return found->second;
    std::string names;
    for (const auto& [known, function] : all_) names += (names.empty() ? "'" : ", '") + known + "'";
    throw ValueError(caller, ": ", option, " must be one of ", names, " or unset, received '",
                     *name, "'");
  }

 private:
  const std::map<std::string, Function> builtin_;
  mutable std::mutex mutex_;
  std::map<std::string, Function> all_;
};

FunctionTable<StandardizeFunction>& standardize_functions() {
  const auto steps = [](bool lower, bool strip) {
    return [=](const std::string& text) { return standardized(text, lower, strip); };
  };
  static FunctionTable<StandardizeFunction> table(
      {{"lower", steps(true, false)},
       {"strip_punctuation", steps(false, true)},
       {"lower_and_strip_punctuation", steps(true, true)}});
  return table;
}

FunctionTable<SplitFunction>& split_functions() {
  static FunctionTable<SplitFunction> table(
      {{"whitespace", [](const std::string& text) { return split_whitespace(text); }},
       {"character", [](const std::string& text) { return split_characters(text); }}});
  return table;
}

// Returns the form in which Keras writes functions, or the name of a built-in one.
template <class Function>
Config function_config(const FunctionTable<Function>& table,
                       const std::optional<std::string>& name) {
  if (!name) return {};
  if (table.is_builtin(*name)) return *name;
  return Config::dict({{"module", "builtins"},
                       {"class_name", "function"},
                       {"config", *name},
                       {"registered_name", "function"}});
}

// Replaces the form in which Keras writes functions by the name.
template <class Function>
void read_function(const FunctionTable<Function>& table, const char* key, Config& config) {
  const Config* const value = config.find(key);
  if (value == nullptr || !value->is_dict()) return;
  const Config* const stored = value->find("config");
  const std::string name = stored != nullptr && stored->is_string() ? stored->string() : "";
  if (!table.contains(name)) {
    const Config* const layer = config.find("name");
    throw NotImplementedError("TextVectorization ", layer == nullptr ? Config() : *layer, ": ", key,
                              " is the Python function '", name,
                              "', which cannot be run; write it in C++ and call register_", key,
                              "_function(\"", name, "\", function)");
  }
  config.set(key, name);
}

void check_text_options(const TextVectorizationOptions& options, const std::string& caller) {
  const std::vector<std::string> modes = {"int", "multi_hot", "count", "tf_idf"};
  if (std::ranges::find(modes, options.output_mode) == modes.end()) {
    throw ValueError(caller, ": output_mode must be 'int', 'multi_hot', 'count' or 'tf_idf', ",
                     "received '", options.output_mode, "'");
  }
  const bool is_int = options.output_mode == "int";
  if (options.ngrams) {
    const std::vector<int64_t>& widths = options.ngrams->given();
    if (widths.empty() || std::ranges::any_of(widths, [](int64_t n) { return n < 1; })) {
      throw ValueError(caller, ": ngrams must be positive");
    }
  }
  if (options.output_sequence_length && *options.output_sequence_length < 1) {
    throw ValueError(caller, ": output_sequence_length must be positive, received ",
                     *options.output_sequence_length);
  }
  if (options.output_sequence_length && !is_int) {
    throw ValueError(caller, ": output_sequence_length requires output_mode 'int', received '",
                     options.output_mode, "'");
  }
  if (options.ragged && !is_int) {
    throw ValueError(caller, ": ragged requires output_mode 'int', received '", options.output_mode,
                     "'");
  }
}

// Returns the options after checking them, because the lookup is constructed from them.
StringLookupOptions lookup_options(const TextVectorizationOptions& options,
                                   const std::string& name) {
  check_text_options(options, "TextVectorization " + name);
  return {.max_tokens = options.max_tokens,
          .mask_token = "",
          .vocabulary = options.vocabulary,
          .output_mode = options.output_mode,
          .idf_weights = options.idf_weights,
          .pad_to_max_tokens = options.pad_to_max_tokens,
          .sparse = options.sparse,
          .encoding = options.encoding,
          .name = name};
}

// Returns ids [batch..., length], cut or padded with zeros; unset: the length of the longest row.
Tensor padded_ids(const RaggedTensor& ids, const Shape& batch, std::optional<int64_t> length) {
  const auto splits = ids.row_splits.data<int64_t>();
  if (!length) {
    length = 0;
    for (int64_t row = 0; row < ids.rows(); ++row) {
      length = std::max(*length, splits[row + 1] - splits[row]);
    }
  }
  Tensor out = Tensor::zeros(batch + Shape{*length}, DType::kInt64);
  const auto from = ids.values.data<int64_t>();
  auto to = out.mutable_data<int64_t>().begin();
  for (int64_t row = 0; row < ids.rows(); ++row, to += *length) {
    std::ranges::copy(from.subspan(splits[row], std::min(splits[row + 1] - splits[row], *length)),
                      to);
  }
  return out;
}

}  // namespace

void register_standardize_function(const std::string& name, StandardizeFunction function) {
  standardize_functions().add(name, std::move(function), "register_standardize_function");
}

void register_split_function(const std::string& name, SplitFunction function) {
  split_functions().add(name, std::move(function), "register_split_function");
}

std::vector<int64_t> NgramWidths::within(int64_t tokens) const {
  std::vector<int64_t> out;
  if (is_list_) {
    std::ranges::copy_if(given_, std::back_inserter(out), [&](int64_t n) { return n <= tokens; });
  } else {
    // n comes from files and may be large.
    out.resize(std::max<int64_t>(std::min(given_[0], tokens), 0));
    std::iota(out.begin(), out.end(), 1);
  }
  return out;
}

Config encode(const NgramWidths& widths) {
  return widths.is_list() ? encode(widths.given()) : Config(widths.given()[0]);
}

void decode(const Config& config, NgramWidths& widths) {
  if (!config.is_list()) {
    widths = NgramWidths(config.integer());
    return;
  }
  std::vector<int64_t> values;
  decode(config, values);
  widths = NgramWidths(std::move(values));
}

// The tokens of all texts in row-major order.
struct TextVectorizationLayer::Tokens {
  RaggedTensor rows;
  Shape batch;  // one dimension for each axis of texts
};

TextVectorizationLayer::TextVectorizationLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      caller_("TextVectorization " + name()),
      lookup_(lookup_options(options_, name())),
      standardize_(standardize_functions().get(options_.standardize, "standardize", caller_)),
      split_(split_functions().get(options_.split, "split", caller_)) {}

std::shared_ptr<TextVectorizationLayer> TextVectorizationLayer::from_config(const Config& config) {
  reject_vocabulary_files(kClassName, config);
  Config with_names = config;
  read_function(standardize_functions(), "standardize", with_names);
  read_function(split_functions(), "split", with_names);
  return std::make_shared<TextVectorizationLayer>(
      keel::from_config<Options>(with_names, kClassName));
}

Config TextVectorizationLayer::get_config() const {
  Options options = options_;
  const Config lookup = lookup_->get_config();
  decode(lookup["vocabulary"], options.vocabulary);
  decode(lookup["idf_weights"], options.idf_weights);
  Config out = to_config(options);
  out.set("standardize", function_config(standardize_functions(), options.standardize));
  out.set("split", function_config(split_functions(), options.split));
  return out;
}

void TextVectorizationLayer::check_inputs(const TensorSpec& spec) const {
  if (spec.dtype != DType::kString) {
    throw TypeError(caller_, ": inputs must be strings, received ", spec.dtype);
  }
  if (spec.layout == Layout::kSparse || (spec.layout == Layout::kRagged && options_.split)) {
    throw TypeError(caller_, ": inputs must be dense; ragged inputs require split unset");
  }
  if (spec.layout == Layout::kRagged && spec.shape.rank() != 2) {
    throw ValueError(caller_, ": ragged inputs must have rank 2, received shape ", spec.shape);
  }
  if (options_.split && spec.shape.rank() > 1 && spec.shape[-1] != 1) {
    throw ValueError(caller_, ": inputs must have rank 1 or a last dimension of 1, received shape ",
                     spec.shape, "; unset split if the strings are tokens");
  }
  const Shape batch = batch_shape(spec);
  if ((options_.ragged || options_.sparse) && batch.rank() != 1) {
    throw ValueError(caller_, ": ragged and sparse results require one batch dimension, received ",
                     "inputs of shape ", spec.shape);
  }
}

Shape TextVectorizationLayer::batch_shape(const TensorSpec& spec) const {
  return spec.shape.rank() < 2 ? spec.shape : spec.shape.drop_last();
}

std::optional<int64_t> TextVectorizationLayer::fixed_length(const TensorSpec& spec) const {
  if (options_.output_sequence_length) return options_.output_sequence_length;
  if (options_.split || spec.layout == Layout::kRagged) return {};
  const int64_t width = spec.shape.rank() < 2 ? 1 : spec.shape[-1];
  if (width == kUnknown || !options_.ngrams) return width;
  int64_t out = 0;
  for (const int64_t n : options_.ngrams->within(width)) out += width - n + 1;
  return out;
}

TensorLike TextVectorizationLayer::symbolic_output(const TensorSpec& spec) const {
  const Shape batch = batch_shape(spec);
  if (options_.output_mode == "int") {
    const bool ragged = options_.ragged && (options_.split || spec.layout == Layout::kRagged);
    const Layout layout = ragged ? Layout::kRagged : Layout::kDense;
    const int64_t length = ragged ? kUnknown : fixed_length(spec).value_or(kUnknown);
    return make_symbolic({.shape = batch + Shape{length}, .dtype = DType::kInt64, .layout = layout},
                         nullptr, 0);
  }
  const TensorSpec rows = {
      .shape = {kUnknown, kUnknown}, .dtype = DType::kString, .layout = Layout::kRagged};
  TensorSpec out = lookup_(Tensors(make_symbolic(rows, nullptr, 0))).leaf().spec();
  out.shape = batch + Shape{out.shape[-1]};
  return make_symbolic(out, nullptr, 0);
}

std::vector<std::string> TextVectorizationLayer::tokens_of_text(
    std::span<const std::string> text) const {
  std::vector<std::string> out;
  for (const std::string& part : text) out.push_back(standardize_ ? standardize_(part) : part);
  if (split_) out = split_(out[0]);
  return options_.ngrams ? ngrams(out, options_.ngrams->within(std::ssize(out))) : out;
}

TextVectorizationLayer::Tokens TextVectorizationLayer::tokens_of(const TensorLike& texts) const {
  const TensorSpec spec = texts.spec();
  check_inputs(spec);
  const auto strings = texts.values().data<std::string>();
  std::vector<int64_t> splits;  // of the texts in `strings`
  if (spec.layout == Layout::kRagged) {
    splits = texts.ragged().row_splits.to_vector<int64_t>();
  } else {
    const int64_t width = spec.shape.rank() < 2 ? 1 : spec.shape[-1];
    splits.resize(batch_shape(spec).size() + 1);
    for (size_t row = 0; row < splits.size(); ++row)
      splits[row] = static_cast<int64_t>(row) * width;
  }
  std::vector<std::vector<std::string>> rows(splits.size() - 1);
  parallel_for(std::ssize(rows), kTextsPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      rows[row] = tokens_of_text(strings.subspan(splits[row], splits[row + 1] - splits[row]));
    }
  });
  return {.rows = RaggedTensor::from_rows(rows), .batch = batch_shape(spec)};
}

Tensors TextVectorizationLayer::call(const Tensors& inputs, const CallContext&) {
  const TensorLike& texts = inputs.leaf();
  const TensorSpec spec = texts.spec();
  check_inputs(spec);
  if (texts.is_symbolic()) return symbolic_output(spec);
  const Tokens tokens = tokens_of(texts);
  const TensorLike out = lookup_(Tensors(tokens.rows)).leaf();
  if (options_.output_mode == "int") {
    const bool ragged = options_.ragged && (options_.split || spec.layout == Layout::kRagged);
    if (ragged) return out;
    return padded_ids(out.ragged(), tokens.batch, fixed_length(spec));
  }
  if (options_.sparse) return out;
  return out.tensor().reshaped(tokens.batch + Shape{out.tensor().dim(-1)});
}

void TextVectorizationLayer::adapt(const TensorLike& texts) {
  lookup_->adapt(tokens_of(texts).rows);
}

void TextVectorizationLayer::adapt(const data::Dataset& batches, std::optional<int64_t> steps) {
  const auto tokens = [this](const Tensors& batch) -> Tensors {
    if (!batch.is_leaf()) {
      throw TypeError(caller_, ": adapt() requires a dataset of tensors, received ",
                      batch.structure());
    }
    const RaggedTensor rows = tokens_of(batch.leaf()).rows;
    // As in Keras, a vector of tokens is one document.
    if (!options_.split && batch.leaf().spec().shape.rank() == 1) return rows.values;
    return rows;
  };
  lookup_->adapt(batches.map(tokens), steps);
}

void TextVectorizationLayer::set_vocabulary(std::vector<std::string> vocabulary,
                                            const std::optional<std::vector<double>>& idf_weights) {
  lookup_->set_vocabulary(std::move(vocabulary), idf_weights);
}

std::vector<std::string> TextVectorizationLayer::get_vocabulary(bool include_special_tokens) const {
  return lookup_->get_vocabulary(include_special_tokens);
}

int64_t TextVectorizationLayer::vocabulary_size() const { return lookup_->vocabulary_size(); }

std::vector<double> TextVectorizationLayer::idf_weights() const { return lookup_->idf_weights(); }

KEEL_REGISTER(Layer, TextVectorizationLayer, .package = "keras",
              .ignored_keys = "vocabulary_size=*, has_input_vocabulary=*")

}  // namespace keel
