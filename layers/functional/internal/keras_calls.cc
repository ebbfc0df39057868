#include <keel/layers/functional/internal/keras_calls.h>

#include <map>
#include <string_view>

#include <keel/layers/attention/internal/attention_inputs.h>

namespace keel {
namespace {

using CallForm = CallSignature::Form;

CallParameter input(const char* name) { return {.name = name}; }
CallParameter flag(const char* name) { return {.name = name, .kind = CallParameter::Kind::kFlag}; }
CallParameter mask_of(const char* masked, const char* name) {
  return {.name = name, .kind = CallParameter::Kind::kMask, .masked = masked};
}
CallParameter training() { return {.name = "training", .kind = CallParameter::Kind::kTraining}; }

CallSignature open() {
  return {.parameters = {input("inputs"), training(), mask_of("inputs", "mask")}};
}

CallSignature trained_and_masked() {
  return {.parameters = {input("inputs"), training(), mask_of("inputs", "mask")},
          .form = CallForm::kOne};
}

CallSignature masked() {
  return {.parameters = {input("inputs"), mask_of("inputs", "mask")}, .form = CallForm::kOne};
}

CallSignature separate_attention() {
  return {.parameters = {input("query"), input("value"), input("key"),
                         mask_of("query", "query_mask"), mask_of("value", "value_mask"),
                         mask_of("key", "key_mask"), input("attention_mask"),
                         flag("return_attention_scores"), training(), flag("use_causal_mask")},
          .form = CallForm::kSeparate};
}

CallSignature attention_to_list() {
  return {.parameters = {input("inputs"), mask_of("inputs", "mask"), training(),
                         flag("return_attention_scores"), flag("use_causal_mask")},
          .form = CallForm::kList};
}

CallSignature recurrent() {
  return {.parameters = {input("sequences"), input("initial_state"), mask_of("sequences", "mask"),
                         training()},
          .form = CallForm::kSpread};
}

CallSignature recurrent_cell() {
  return {.parameters = {input("inputs"), input("states"), training()}, .form = CallForm::kSpread};
}

CallSignature two(const char* first, const char* second) {
  return {.parameters = {input(first), input(second)}, .form = CallForm::kSpread};
}

const std::map<std::string, CallSignature>& signatures() {
  static const std::map<std::string, CallSignature> kSignatures = {
      {"AdditiveAttention", attention_to_list()},
      {"Attention", attention_to_list()},
      {"BatchNormalization", trained_and_masked()},
      {"Bidirectional", recurrent()},
      {"CategoryEncoding", two("inputs", "count_weights")},
      {"EmbedReduce", two("inputs", "weights")},
      {"FeatureCross", two("x0", "x")},
      {"Functional", trained_and_masked()},
      {"GRU", recurrent()},
      {"GRUCell", recurrent_cell()},
      {"GlobalAveragePooling1D", masked()},
      {"GroupQueryAttention", separate_attention()},
      {"LSTM", recurrent()},
      {"LSTMCell", recurrent_cell()},
      {"Model", trained_and_masked()},
      {"MultiHeadAttention", separate_attention()},
      {"Sequential", trained_and_masked()},
      {"SimpleRNN", recurrent()},
      {"SimpleRNNCell", recurrent_cell()},
      {"Softmax", masked()},
      {"TimeDistributed", trained_and_masked()},
  };
  return kSignatures;
}

// Returns true for a list that holds the first input followed by the others.
bool is_spread(const Tensors& inputs) { return inputs.is_sequence() && inputs.items().size() > 1; }

KerasCall spread_call(const CallSignature& signature, const Tensors& inputs) {
  const std::string& first = signature.parameters[0].name;
  if (!is_spread(inputs)) return {.inputs = {{.name = first, .value = inputs}}};
  const std::string& second = signature.parameters[1].name;
  const Tensors::Items rest(inputs.items().begin() + 1, inputs.items().end());
  // Keras passes states as a list even if there is one.
  const bool states = second == "initial_state" || second == "states";
  return {.inputs = {{.name = first, .value = inputs[0]},
                     {.name = second,
                      .value = states ? Tensors::list(rest) : rest[0],
                      .by_keyword = second != "x" && second != "states"}}};
}

KerasCall attention_call(const std::string& class_name, CallForm form, const Tensors& inputs) {
  const AttentionParts<TensorLike> parts = attention_parts(inputs, class_name);
  KerasCall out;
  if (form == CallForm::kSeparate) {
    out.inputs = {{.name = "query", .value = parts.query}, {.name = "value", .value = parts.value}};
    if (parts.key) out.inputs.push_back({.name = "key", .value = *parts.key});
    if (parts.attention_mask) {
      out.inputs.push_back(
          {.name = "attention_mask", .value = *parts.attention_mask, .by_keyword = true});
    }
  } else {
    Tensors::Items list = {parts.query, parts.value};
    if (parts.key) list.emplace_back(*parts.key);
    out.inputs = {{.name = "inputs", .value = Tensors::list(std::move(list))}};
  }
  if (is_set(parts.return_attention_scores)) out.flags.emplace_back("return_attention_scores");
  if (is_set(parts.use_causal_mask)) out.flags.emplace_back("use_causal_mask");
  return out;
}

}  // namespace

const CallSignature& call_signature(const std::string& class_name) {
  static const CallSignature kOpen = open();
  const auto it = signatures().find(class_name);
  return it == signatures().end() ? kOpen : it->second;
}

bool takes_training(const std::string& class_name) {
  constexpr std::string_view kWithout =
      " Activation ActivityRegularization Add Average AveragePooling1D CategoryEncoding "
      "Concatenate Conv1D Cropping1D Dense DepthwiseConv1D Discretization Dot "
      "DotInteraction ELU EinsumDense EmbedReduce Embedding FeatureCross Flatten "
      "GlobalAveragePooling1D GlobalMaxPooling1D GroupNormalization Hashing Identity "
      "IntegerLookup LayerNormalization LeakyReLU Masking MaxPooling1D Maximum Minimum "
      "Multiply Normalization PReLU Permute RMSNormalization ReLU RepeatVector Rescaling "
      "Reshape SeparableConv1D Softmax StringLookup Subtract UnitNormalization "
      "UpSampling1D ZeroPadding1D ";
  return kWithout.find(" " + class_name + " ") == std::string_view::npos;
}

KerasCall keras_call(const std::string& class_name, const Tensors& inputs) {
  const CallSignature& signature = call_signature(class_name);
  switch (signature.form) {
    case CallForm::kSeparate:
    case CallForm::kList:
      return attention_call(class_name, signature.form, inputs);
    case CallForm::kSpread:
      return spread_call(signature, inputs);
    case CallForm::kOpen:
    case CallForm::kOne:
      break;
  }
  return {.inputs = {{.name = signature.parameters[0].name, .value = inputs}}};
}

}  // namespace keel
