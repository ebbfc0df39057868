#include <keel/layers/functional/internal/keras_calls.h>

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <algorithm>

#include <keel/layers/attention/internal/attention_inputs.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

using CallForm = CallSignature::Form;

// Parses one parameter of ClassTraits::call. `before` are the parameters to its left.
CallParameter parameter(const std::string& text, const std::vector<CallParameter>& before) {
  constexpr std::string_view kFlag = "=false", kMask = "mask", kMaskOf = "_mask";
  if (text == "training") return {.name = text, .kind = CallParameter::Kind::kTraining};
  if (text.ends_with(kFlag)) {
    return {.name = text.substr(0, text.size() - kFlag.size()), .kind = CallParameter::Kind::kFlag};
  }
  if (text == kMask) {
    return {.name = text, .kind = CallParameter::Kind::kMask, .masked = before.at(0).name};
  }
  if (text.ends_with(kMaskOf)) {
    // A parameter such as `attention_mask`, which masks none of the inputs, is an input.
    const std::string masked = text.substr(0, text.size() - kMaskOf.size());
    if (std::ranges::find(before, masked, &CallParameter::name) != before.end()) {
      return {.name = text, .kind = CallParameter::Kind::kMask, .masked = masked};
    }
  }
  return {.name = text};
}

std::vector<CallParameter> parse_parameters(const std::string& call) {
  std::vector<CallParameter> out;
  for (const absl::string_view text : absl::StrSplit(call, ',', absl::SkipWhitespace())) {
    out.push_back(parameter(std::string(absl::StripLeadingAsciiWhitespace(text)), out));
  }
  return out;
}

CallSignature open() { return {.parameters = parse_parameters("inputs, training, mask")}; }

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

// Converts the inputs of a layer that takes one input, or a dict of it and the flags.
KerasCall flagged_call(const CallSignature& signature, const Tensors& inputs) {
  const std::string& first = signature.parameters[0].name;
  if (!inputs.is_dict()) return {.inputs = {{.name = first, .value = inputs}}};
  KerasCall out{.inputs = {{.name = first, .value = inputs[first]}}};
  for (const CallParameter& parameter : signature.parameters) {
    if (parameter.kind != CallParameter::Kind::kFlag) continue;
    const auto it = inputs.entries().find(parameter.name);
    if (it != inputs.entries().end() && is_set(it->second.leaf())) {
      out.flags.push_back(parameter.name);
    }
  }
  return out;
}

}  // namespace

CallSignature call_signature(const std::string& class_name) {
  CallSignature out{.parameters = parse_parameters(layer_registry().traits(class_name).call)};
  const auto count = [&](CallParameter::Kind kind) {
    return std::ranges::count(out.parameters, kind, &CallParameter::kind);
  };
  const bool several = count(CallParameter::Kind::kInput) > 1;
  const bool flags = count(CallParameter::Kind::kFlag) > 0;
  if (several) {
    out.form = flags ? CallForm::kSeparate : CallForm::kSpread;
  } else if (flags) {
    out.form = CallForm::kList;
  } else if (count(CallParameter::Kind::kMask) > 0) {
    out.form = CallForm::kOne;
  } else {
    return open();
  }
  return out;
}

bool takes_training(const std::string& class_name) {
  const ClassTraits traits = layer_registry().traits(class_name);
  if (!traits.package.starts_with("keras")) return true;
  const std::vector<CallParameter> parameters = parse_parameters(traits.call);
  return std::ranges::find(parameters, CallParameter::Kind::kTraining, &CallParameter::kind) !=
         parameters.end();
}

KerasCall keras_call(const std::string& class_name, const Tensors& inputs) {
  const CallSignature signature = call_signature(class_name);
  switch (signature.form) {
    case CallForm::kSeparate:
      return attention_call(class_name, signature.form, inputs);
    case CallForm::kList:
      if (inputs.is_leaf() ||
          (inputs.is_dict() && inputs.entries().contains(signature.parameters[0].name))) {
        return flagged_call(signature, inputs);
      }
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
