#include <keel/layers/functional/internal/functional_nodes.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <array>

#include <keel/layers/functional/internal/keras_calls.h>
#include <keel/layers/functional/internal/operator_placeholder.h>

namespace keel {
namespace {

using Form = CallSignature::Form;
using Kind = CallParameter::Kind;

bool is_class(const Config& config, const char* class_name) {
  const Config* const found = config.is_dict() ? config.find("class_name") : nullptr;
  return found != nullptr && found->is_string() && found->string() == class_name;
}

bool is_reference(const Config& config) {
  return config.is_list() && !config.items().empty() && config.items()[0].is_string();
}

bool is_array(const Config& config) {
  return config.is_number() || config.is_bool() ||
         (config.is_list() && !config.items().empty() &&
          std::ranges::all_of(config.items(), is_array));
}

bool is_tagged_leaf(const Config& config) {
  return is_class(config, "__keras_tensor__") || is_class(config, "__numpy__") ||
         is_class(config, "__tensor__");
}

// Unwraps a list of one tensor, the form of Keras 2 for a single tensor.
GraphReferences unwrapped(GraphReferences read) {
  const bool single =
      read.kind() == NestKind::kList && read.items().size() == 1 && read.items()[0].is_leaf();
  return single ? read.items()[0] : read;
}

// Collects the masks of a structure in flattening order, null configs where there is none.
void collect_masks(const Config& config, std::vector<const Config*>& out) {
  if (config.is_null() || is_reference(config) || is_array(config) || is_tagged_leaf(config)) {
    out.push_back(&config);
  } else if (config.is_list()) {
    for (const Config& item : config.items()) collect_masks(item, out);
  } else if (is_class(config, "__tuple__")) {
    collect_masks(config["items"], out);
  } else if (config.is_dict()) {
    std::vector<std::pair<std::string, const Config*>> entries;
    for (const auto& [key, value] : config.entries()) entries.emplace_back(key, &value);
    std::ranges::sort(entries, {}, [](const auto& entry) { return entry.first; });
    for (const auto& [_, value] : entries) collect_masks(*value, out);
  }
}

// Collects the arguments of a call one at a time and combines them to inputs.
class Arguments {
 public:
  Arguments(const GraphParser& parser, std::string caller, const std::string& class_name)
      : parser_(parser),
        caller_(std::move(caller)),
        signature_(call_signature(class_name)),
        is_of_user_(absl::StrContains(class_name, '>')) {}

  void take_positional(size_t position, const Config& value) {
    const auto& parameters = signature_.parameters;
    if (signature_.form == Form::kOpen && position > 0) {
      // The second argument of most layers is `training`; tensors are treated as further inputs.
      if (value.is_bool()) call_.options.training = value.boolean();
      if (!value.is_null() && !value.is_bool()) further_.push_back(parser_.structure(value));
    } else if (position < parameters.size()) {
      take(parameters[position], value);
    } else if (!value.is_null()) {
      refuse("more arguments than expected", value);
    }
  }

  void take_first(GraphReferences inputs) {
    inputs_.insert_or_assign(signature_.parameters[0].name, std::move(inputs));
  }

  void take_keyword(const std::string& name, const Config& value) {
    const auto it = std::ranges::find(signature_.parameters, name, &CallParameter::name);
    if (it != signature_.parameters.end()) {
      take(*it, value);
    } else if (name == "training" && (value.is_bool() || value.is_null())) {
      if (value.is_bool()) call_.options.training = value.boolean();
    } else if (is_of_user_ && !value.is_null() && !value.is_bool()) {
      further_.push_back(parser_.structure(value));
    } else if (!value.is_null() && value != Config(false)) {
      refuse(absl::StrCat("the argument '", name, "'"), value);
    }
  }

  GraphCall finish() {
    for (const auto& [input, mask] : masks_) set_masks(input, *mask);
    call_.inputs = all_inputs();
    return std::move(call_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const Config& value) const {
    throw NotImplementedError(
        caller_, " is called with ", what, ", ", to_json(value),
        ", which is not supported; build this model in C++ and load its weights");
  }

  void take(const CallParameter& parameter, const Config& value) {
    if (value.is_null()) return;
    if (parameter.kind == Kind::kInput) {
      inputs_.insert_or_assign(parameter.name, parser_.structure(value));
    } else if (parameter.kind == Kind::kMask) {
      masks_.emplace_back(parameter.masked, &value);
    } else if (!value.is_bool()) {
      refuse(absl::StrCat("the argument '", parameter.name, "'"), value);
    } else if (parameter.kind == Kind::kTraining) {
      call_.options.training = value.boolean();
    } else if (value.boolean()) {
      flags_.push_back(parameter.name);
    }
  }

  // Assigns masks to inputs; both are in flattening order.
  void set_masks(const std::string& input, const Config& config) {
    const auto it = inputs_.find(input);
    if (it == inputs_.end()) return;
    std::vector<const Config*> masks;
    collect_masks(config, masks);
    size_t next = 0;
    it->second = map_structure(it->second, [&](GraphReference leaf) -> GraphReference {
      const Config* const mask = next < masks.size() ? masks[next] : nullptr;
      ++next;
      if (mask != nullptr && !mask->is_null()) {
        leaf.mask = std::make_shared<GraphReference>(parser_.structure(*mask).leaf());
      }
      return leaf;
    });
  }

  GraphReferences all_inputs() const {
    switch (signature_.form) {
      case Form::kSpread:
        return spread();
      case Form::kSeparate:
        return separate();
      case Form::kList:
        return with_flags(GraphReferences::Dict{{"inputs", first()}}, first());
      case Form::kOpen:
      case Form::kOne:
        break;
    }
    return with_further();
  }

  GraphReferences first() const {
    const auto it = inputs_.find(signature_.parameters[0].name);
    return it == inputs_.end() ? GraphReferences::list({}) : it->second;
  }

  GraphReferences with_further() const {
    if (further_.empty()) return first();
    GraphReferences::Items all;
    if (first().kind() == NestKind::kList) {
      all = first().items();
    } else {
      all.push_back(first());
    }
    all.insert(all.end(), further_.begin(), further_.end());
    return all.size() == 1 ? all[0] : GraphReferences::list(std::move(all));
  }

  // Returns the tensors of all inputs in the order of the parameters. The first input may already
  // be a list of all of them: Keras 2 stores the states of recurrent layers in this form.
  GraphReferences spread() const {
    GraphReferences::Items all;
    for (const CallParameter& parameter : signature_.parameters) {
      const auto it = inputs_.find(parameter.name);
      if (it == inputs_.end()) continue;
      if (it->second.is_sequence()) {
        const auto& items = it->second.items();
        all.insert(all.end(), items.begin(), items.end());
      } else {
        all.push_back(it->second);
      }
    }
    return all.size() == 1 ? all[0] : GraphReferences::list(std::move(all));
  }

  GraphReferences separate() const {
    GraphReferences::Dict named = inputs_;
    if (first().is_sequence()) {
      // A list of query, value and, optionally, key.
      constexpr std::array<const char*, 3> kNames = {"query", "value", "key"};
      const GraphReferences::Items items = first().items();
      for (size_t i = 0; i < std::min(items.size(), kNames.size()); ++i) {
        named.insert_or_assign(kNames[i], items[i]);
      }
    }
    GraphReferences::Items list;
    for (const char* name : {"query", "value", "key"}) {
      if (const auto it = named.find(name); it != named.end()) list.push_back(it->second);
    }
    if (named.contains("attention_mask")) return with_flags(named, named);
    return with_flags(std::move(named), GraphReferences::list(std::move(list)));
  }

  GraphReferences with_flags(GraphReferences::Dict named, GraphReferences plain) const {
    if (flags_.empty()) return plain;
    for (const std::string& flag : flags_) {
      named.insert_or_assign(flag, GraphReference{.constant = Tensor::scalar(true)});
    }
    return named;
  }

  const GraphParser& parser_;
  const std::string caller_;
  const CallSignature signature_;
  const bool is_of_user_;
  GraphCall call_;
  GraphReferences::Dict inputs_;  // by parameter name
  GraphReferences::Items further_;
  std::vector<std::pair<std::string, const Config*>> masks_;
  std::vector<std::string> flags_;
};

// Returns the Keras 2 keywords after the last tensor, or null if there are none.
Config last_keywords(const Config& node) {
  if (is_reference(node)) return node.items().size() == 4 ? node.items()[3] : Config();
  Config out;
  if (node.is_list()) {
    for (const Config& item : node.items()) {
      Config found = last_keywords(item);
      if (!found.is_null()) out = std::move(found);
    }
  } else if (node.is_dict()) {
    for (const auto& [_, item] : node.entries()) {
      Config found = last_keywords(item);
      if (!found.is_null()) out = std::move(found);
    }
  }
  return out;
}

}  // namespace

const Config& GraphParser::field(const Config& config, const char* key) const {
  if (!config.is_dict()) fail("expected a dict with '", key, "', received ", to_json(config));
  const Config* const found = config.find(key);
  if (found == nullptr) fail("the key '", key, "' is missing");
  return *found;
}

const Config::List& GraphParser::list(const Config& config, const char* key) const {
  const Config& found = field(config, key);
  if (!found.is_list()) fail("'", key, "' must be a list");
  return found.items();
}

const std::string& GraphParser::text(const Config& config, const char* key) const {
  const Config& found = field(config, key);
  if (!found.is_string()) fail("'", key, "' must be a string");
  return found.string();
}

GraphCall GraphParser::call(const Config& node, const std::string& layer,
                            const std::string& class_name) const {
  Arguments arguments(*this, absl::StrCat(caller_, ": layer '", layer, "' (", class_name, ")"),
                      class_name);
  Config keywords;
  if (node.is_dict() && node.find("args") != nullptr) {
    const Config::List& positional = list(node, "args");
    for (size_t i = 0; i < positional.size(); ++i) arguments.take_positional(i, positional[i]);
    keywords = field(node, "kwargs");
    if (keywords.is_null()) fail("'kwargs' of layer '", layer, "' must be a dict");
  } else {
    arguments.take_first(unwrapped(structure(node)));
    keywords = last_keywords(node);
    if (keywords.is_null()) keywords = Config::dict();
  }
  if (!keywords.is_dict()) fail("expected keyword arguments, received ", to_json(keywords));
  for (const auto& [name, value] : keywords.entries()) arguments.take_keyword(name, value);
  return arguments.finish();
}

namespace {

// Replaces the tensors in the arguments of an operator by placeholders, and collects them.
class OperatorParser {
 public:
  explicit OperatorParser(const GraphParser& parser) : parser_(parser) {}

  Config value(const Config& config) {
    const bool is_constant = is_reference(config) && config.items()[0] == Config("_CONSTANT_VALUE");
    if (is_constant && config.items().size() > 2) return config.items()[2];
    const bool is_tensor = is_tensor_reference(config) || is_class(config, "__keras_tensor__");
    if (is_tensor) {
      tensors_.push_back(parser_.structure(config));
      return tensor_placeholder(std::ssize(tensors_) - 1);
    }
    if (config.is_list()) return values(config.items());
    if (is_class(config, "__tuple__")) return values(parser_.list(config, "items"));
    if (is_class(config, "__slice__")) return parser_.field(config, "config");
    if (is_tagged_leaf(config)) return parser_.field(parser_.field(config, "config"), "value");
    return config;
  }

  OperatorNode finish(Config arguments) {
    return {.tensors = GraphReferences::list(std::move(tensors_)),
            .arguments = std::move(arguments)};
  }

 private:
  // Lists of strings are no references: those have the numbers of the call and of the output.
  static bool is_tensor_reference(const Config& config) {
    return is_reference(config) && config.items().size() >= 3 && config.items()[1].is_integer() &&
           config.items()[2].is_integer();
  }

  Config values(const Config::List& items) {
    Config::List out;
    for (const Config& item : items) out.push_back(value(item));
    return out;
  }

  const GraphParser& parser_;
  GraphReferences::Items tensors_;
};

}  // namespace

OperatorNode GraphParser::operator_call(const Config& node) const {
  OperatorParser operands(*this);
  Config arguments = Config::dict();
  Config keywords;
  if (node.is_dict() && node.find("args") != nullptr) {
    const Config::List& positional = list(node, "args");
    for (size_t i = 0; i < positional.size(); ++i) {
      arguments.set(std::to_string(i), operands.value(positional[i]));
    }
    keywords = field(node, "kwargs");
  } else {
    arguments.set("0", operands.value(node));
    keywords = last_keywords(node);
  }
  if (keywords.is_dict()) {
    for (const auto& [name, value] : keywords.entries()) arguments.set(name, operands.value(value));
  }
  return operands.finish(std::move(arguments));
}

GraphReferences GraphParser::ends(const Config& config) const {
  return unwrapped(structure(config));
}

GraphReferences GraphParser::structure(const Config& config) const {
  if (is_reference(config)) return reference(config);
  if (config.is_list() && !is_array(config)) {
    return GraphReferences::list(children(config.items()));
  }
  if (!config.is_dict()) return constant(config);
  if (is_class(config, "__keras_tensor__")) {
    return reference(field(field(config, "config"), "keras_history"));
  }
  if (is_class(config, "__tuple__")) {
    return GraphReferences::tuple(children(list(config, "items")));
  }
  if (is_tagged_leaf(config)) {
    const Config& inner = field(config, "config");
    GraphReference out = constant(field(inner, "value"));
    DType dtype = DType::kFloat32;
    if (const Config* const name = inner.find("dtype")) decode(*name, dtype);
    out.constant = out.constant->cast(dtype);
    return out;
  }
  GraphReferences::Dict out;
  for (const auto& [key, child] : config.entries()) out.emplace(key, structure(child));
  return out;
}

GraphReferences::Items GraphParser::children(const Config::List& items) const {
  GraphReferences::Items out;
  for (const Config& item : items) out.push_back(structure(item));
  return out;
}

// Parses [layer, call, output] or [layer, call, output, keyword arguments].
GraphReference GraphParser::reference(const Config& config) const {
  const bool fits =
      is_reference(config) && (config.items().size() == 3 || config.items().size() == 4);
  if (!fits) fail("expected [layer, call, output], received ", to_json(config));
  const Config::List& items = config.items();
  if (items[0].string() == "_CONSTANT_VALUE") return constant(items[2]);
  if (!items[1].is_integer() || !items[2].is_integer()) {
    fail("expected [layer, call, output], received ", to_json(config));
  }
  return {.layer = items[0].string(), .call = items[1].integer(), .output = items[2].integer()};
}

// Parses a number or nested lists of numbers, whose lists must have equal lengths on each level.
GraphReference GraphParser::constant(const Config& config) const {
  std::vector<double> values;
  bool integers = true;
  const Shape shape = array(config, values, integers);
  const DType dtype = integers ? DType::kInt32 : DType::kFloat32;
  return {.constant = Tensor::from(values, shape).cast(dtype)};
}

Shape GraphParser::array(const Config& config, std::vector<double>& values, bool& integers) const {
  if (config.is_list()) {
    std::optional<Shape> inner;
    for (const Config& item : config.items()) {
      const Shape shape = array(item, values, integers);
      if (inner && *inner != shape) fail("the rows of a constant must have the same length");
      inner = shape;
    }
    return Shape{std::ssize(config.items())} + inner.value_or(Shape());
  }
  if (!config.is_number() && !config.is_bool()) {
    throw NotImplementedError(
        caller_, ": a layer is called with the constant ", to_json(config),
        ", which is not supported; build this model in C++ and load its weights");
  }
  integers = integers && !config.is_bool() && config.is_integer();
  values.push_back(config.is_bool() ? config.boolean() : config.number());
  return {};
}

}  // namespace keel

template class keel::Nest<keel::GraphReference>;
template std::vector<keel::GraphReferences>::~vector();
template std::vector<keel::GraphReferences>::vector(
    const std::vector<keel::GraphReferences>& other);
