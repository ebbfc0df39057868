// FunctionalModel::from_config: graphs as Keras 2 and Keras 3 write them.
#include <algorithm>
#include <map>
#include <set>

#include "layers/functional.h"
#include "layers/functional_operators.h"
#include "layers/registry.h"

namespace keel {
namespace {

struct Keywords;

// Output `output` of call `call` of a layer, or a constant; calls are counted from 0 once a graph
// is read.
struct Reference {
  std::string layer = {};
  int64_t call = 0;
  int64_t output = 0;
  std::optional<Tensor> constant = {};
  std::shared_ptr<const Keywords> keywords = {};  // of the call that takes it
};
using References = Nest<Reference>;

// What a call is given beside its inputs.
struct Keywords {
  CallOptions options = {};
  std::vector<Reference> masks = {};   // of the inputs in order
  std::vector<Reference> inputs = {};  // further ones
};

bool is_class(const Config& config, const char* class_name) {
  const Config* const found = config.find("class_name");
  return found != nullptr && found->is_string() && found->string() == class_name;
}

// Reads the parts of a graph's config. All mistakes are ValueErrors that name the model.
class Parser {
 public:
  explicit Parser(std::string who) : who_(std::move(who)) {}

  template <class... Args>
  [[noreturn]] void fail(const Args&... args) const {
    throw ValueError(who_, ": ", args...);
  }

  const Config& field(const Config& config, const char* key) const {
    if (!config.is_dict()) fail("expected a dict with '", key, "', received ", to_json(config));
    const Config* const found = config.find(key);
    if (found == nullptr) fail("no key '", key, "'");
    return *found;
  }

  const Config::List& list(const Config& config, const char* key) const {
    const Config& found = field(config, key);
    if (!found.is_list()) fail("'", key, "' is no list");
    return found.items();
  }

  const std::string& text(const Config& config, const char* key) const {
    const Config& found = field(config, key);
    if (!found.is_string()) fail("'", key, "' is no string");
    return found.string();
  }

  // One call of a layer, in either form.
  std::pair<References, Keywords> call(const Config& node) const {
    if (node.is_dict() && node.find("args") != nullptr) {
      Keywords how = keywords(field(node, "kwargs"));
      Config::List arguments = list(node, "args");
      while (arguments.size() > 1 && (arguments.back().is_null() || arguments.back().is_bool())) {
        // The second argument of most layers is `training`.
        if (arguments.back().is_bool()) how.options.training = arguments.back().boolean();
        arguments.pop_back();
      }
      References inputs = References::list({});
      if (!arguments.empty()) {
        inputs = structure(arguments.size() == 1 ? arguments[0] : Config(arguments));
      }
      return {with_further(std::move(inputs), how, arguments.empty()), how};
    }
    References inputs = unwrapped(structure(node));
    // Keras 2 has the keywords behind each tensor; those of the last one count.
    Keywords how;
    for (const Reference& r : flatten(inputs)) {
      if (r.keywords != nullptr) how = *r.keywords;
    }
    return {with_further(std::move(inputs), how, false), how};
  }

  // Inputs or outputs of the model.
  References ends(const Config& config) const { return unwrapped(structure(config)); }

 private:
  static bool is_reference(const Config& config) {
    return config.is_list() && !config.items().empty() && config.items()[0].is_string();
  }

  // Layers here take all their tensors as one input.
  static References with_further(References inputs, const Keywords& how, bool none) {
    if (how.inputs.empty()) return inputs;
    References::Items all;
    if (inputs.kind() == NestKind::kList) {
      all = inputs.items();
    } else if (!none) {
      all.push_back(std::move(inputs));
    }
    for (const Reference& r : how.inputs) all.emplace_back(r);
    return all.size() == 1 ? all[0] : References::list(std::move(all));
  }

  References structure(const Config& config) const {
    if (is_reference(config)) return reference(config);
    if (config.is_list() && !is_array(config)) return References::list(children(config.items()));
    if (!config.is_dict()) return constant(config);
    if (is_class(config, "__keras_tensor__")) {
      return reference(field(field(config, "config"), "keras_history"));
    }
    if (is_class(config, "__tuple__")) return References::tuple(children(list(config, "items")));
    if (is_class(config, "__numpy__") || is_class(config, "__tensor__")) {
      const Config& inner = field(config, "config");
      Reference out = constant(field(inner, "value"));
      DType dtype = DType::kFloat32;
      if (const Config* const name = inner.find("dtype")) decode(*name, dtype);
      out.constant = out.constant->cast(dtype);
      return out;
    }
    References::Dict out;
    for (const auto& [key, child] : config.entries()) out.emplace(key, structure(child));
    return out;
  }

  static bool is_array(const Config& config) {
    return config.is_number() || config.is_bool() ||
           (config.is_list() && !config.items().empty() &&
            std::ranges::all_of(config.items(), is_array));
  }

  // A number, or lists of numbers, all of one length.
  Reference constant(const Config& config) const {
    std::vector<double> values;
    bool integers = true;
    const Shape shape = array(config, values, integers);
    const DType dtype = integers ? DType::kInt32 : DType::kFloat32;
    return {.constant = Tensor::from<double>(std::move(values), shape).cast(dtype)};
  }

  Shape array(const Config& config, std::vector<double>& values, bool& integers) const {
    if (config.is_list()) {
      std::optional<Shape> inner;
      for (const Config& item : config.items()) {
        const Shape shape = array(item, values, integers);
        if (inner && *inner != shape) fail("the rows of a constant differ in length");
        inner = shape;
      }
      return Shape{std::ssize(config.items())} + inner.value_or(Shape());
    }
    if (!config.is_number() && !config.is_bool()) {
      throw NotImplementedError(who_, ": a layer is called with the constant ", to_json(config));
    }
    integers = integers && !config.is_bool() && config.is_integer();
    values.push_back(config.is_bool() ? config.boolean() : config.number());
    return {};
  }

  References::Items children(const Config::List& items) const {
    References::Items out;
    for (const Config& item : items) out.push_back(structure(item));
    return out;
  }

  // [layer, call, output] or [layer, call, output, keyword arguments].
  Reference reference(const Config& config) const {
    const bool fits =
        is_reference(config) && (config.items().size() == 3 || config.items().size() == 4);
    if (!fits) fail("expected [layer, call, output], received ", to_json(config));
    const Config::List& items = config.items();
    const auto how = items.size() == 4 ? std::make_shared<const Keywords>(keywords(items[3]))
                                       : std::shared_ptr<const Keywords>();
    if (items[0].string() == "_CONSTANT_VALUE") {
      Reference out = constant(items[2]);
      out.keywords = how;
      return out;
    }
    if (!items[1].is_integer() || !items[2].is_integer()) {
      fail("expected [layer, call, output], received ", to_json(config));
    }
    return {.layer = items[0].string(),
            .call = items[1].integer(),
            .output = items[2].integer(),
            .keywords = how};
  }

  // Tensors that layers here take as further inputs, in this order.
  static bool is_input(const std::string& key) {
    return key == "query" || key == "value" || key == "key" || key == "initial_state" ||
           key == "inputs";
  }

  Keywords keywords(const Config& config) const {
    if (!config.is_dict()) fail("expected keyword arguments, received ", to_json(config));
    Keywords out;
    for (const char* key : {"inputs", "query", "value", "key", "initial_state"}) {
      const Config* const found = config.find(key);
      if (found == nullptr || found->is_null()) continue;
      for (const Reference& r : flatten(structure(*found))) out.inputs.push_back(r);
    }
    for (const auto& [key, value] : config.entries()) {
      if (is_input(key) || value.is_null()) continue;
      if (key == "training" && value.is_bool()) {
        out.options.training = value.boolean();
      } else if (key == "mask") {
        // Tensors without one have null in a list.
        if (!has_null(value)) out.masks = flatten(structure(value));
      } else if (value != Config(false)) {
        throw NotImplementedError(who_, ": a layer is called with the argument '", key, "'");
      }
    }
    return out;
  }

  static bool has_null(const Config& config) {
    return config.is_null() || (config.is_list() && std::ranges::any_of(config.items(), has_null));
  }

  // Keras 2 puts a single tensor into a list.
  static References unwrapped(References read) {
    const bool single =
        read.kind() == NestKind::kList && read.items().size() == 1 && read.items()[0].is_leaf();
    return single ? read.items()[0] : read;
  }

  const std::string who_;
};

// One call of a layer.
struct Call {
  References inputs;
  Keywords how = {};
  enum class State { kNew, kActive, kDone } state = State::kNew;
  std::vector<TensorLike> outputs = {};  // when done
};

struct Entry {
  const Config* config = nullptr;
  std::string class_name;
  std::optional<LayerHandle<Layer>> layer = {};  // made when its first call is
  std::vector<Call> calls = {};

  bool is_operator = false;  // of Keras, no layer

  bool is_input() const { return class_name == "InputLayer"; }
  bool is_functional() const { return class_name == "Functional" || class_name == "Model"; }
  bool is_model() const { return is_functional() || class_name == "Sequential"; }
};

class Reader {
 public:
  Reader(const Config& config, std::string name)
      : name_(std::move(name)), parser_("Functional " + name_) {
    for (const Config& layer : parser_.list(config, "layers")) add(layer);
    inputs_ = parser_.ends(parser_.field(config, "input_layers"));
    outputs_ = parser_.ends(parser_.field(config, "output_layers"));
    if (flatten(outputs_).empty()) parser_.fail("there are no outputs");
    for (auto& [layer, entry] : entries_) {
      if (entry.is_model()) count_calls_from_zero(layer, entry);
    }
  }

  FunctionalOptions read() {
    FunctionalOptions options;
    options.name = name_;
    options.inputs = tensors(inputs_);
    options.outputs = tensors(outputs_);
    return options;
  }

 private:
  void add(const Config& config) {
    const std::string& name = parser_.text(config, "name");
    Entry entry{.config = &config,
                .class_name = parser_.text(config, "class_name"),
                .is_operator = is_operator(config)};
    for (const Config& node : parser_.list(config, "inbound_nodes")) {
      entry.calls.push_back(entry.is_operator ? operator_call(node) : layer_call(node));
    }
    if (entry.is_input()) {
      if (!entry.calls.empty()) parser_.fail("input layer '", name, "' has inputs");
      entry.calls.emplace_back();
    }
    if (!entries_.emplace(name, std::move(entry)).second) {
      parser_.fail("two layers are named '", name, "'");
    }
  }

  Call layer_call(const Config& node) const {
    auto [inputs, how] = parser_.call(node);
    return {.inputs = std::move(inputs), .how = std::move(how)};
  }

  // An operator may take what layers do not. It does not matter where it only makes a mask;
  // elsewhere it is refused when it is needed.
  Call operator_call(const Config& node) const {
    try {
      return layer_call(node);
    } catch (const NotImplementedError&) {
      return {.inputs = References::list({})};
    }
  }

  // Keras counts the calls of nested models from 0 or 1: Keras 2 from 1 everywhere, Keras 3 from 1
  // for a Functional among the outputs. Takes the reading in which all references are to calls
  // there are and, if there is one, in which all calls are used.
  void count_calls_from_zero(const std::string& layer, const Entry& entry) {
    std::vector<Reference*> inner = references_to(layer);
    std::vector<Reference*> outer;
    collect(outputs_, layer, outer);
    const auto count = std::ssize(entry.calls);
    const bool outer_from_one =
        entry.is_functional() &&
        std::ranges::none_of(outer, [](const Reference* r) { return r->call == 0; });
    const auto outer_shift = [&](int64_t shift) { return outer_from_one ? 1 : shift; };
    int64_t best = 0;
    int best_score = -1;
    for (const int64_t shift : {0, 1}) {
      std::set<int64_t> used;
      for (const Reference* r : inner) used.insert(r->call - shift);
      for (const Reference* r : outer) used.insert(r->call - outer_shift(shift));
      const bool valid = used.empty() || (*used.begin() >= 0 && *used.rbegin() < count);
      const int score = !valid ? 0 : std::ssize(used) == count ? 2 : 1;
      if (score > best_score) {
        best = shift;
        best_score = score;
      }
    }
    for (Reference* r : inner) r->call -= best;
    for (Reference* r : outer) r->call -= outer_shift(best);
  }

  static void collect(References& structure, const std::string& layer,
                      std::vector<Reference*>& out) {
    for_each_leaf(structure, [&](const std::string&, const Reference& r) {
      if (r.layer == layer) out.push_back(const_cast<Reference*>(&r));
    });
  }

  std::vector<Reference*> references_to(const std::string& layer) {
    std::vector<Reference*> out;
    for (auto& [_, entry] : entries_) {
      for (Call& call : entry.calls) {
        collect(call.inputs, layer, out);
        for (Reference& mask : call.how.masks) {
          if (mask.layer == layer) out.push_back(&mask);
        }
      }
    }
    return out;
  }

  Entry& entry_of(const Reference& r) {
    const auto it = entries_.find(r.layer);
    if (it == entries_.end()) parser_.fail("there is no layer '", r.layer, "'");
    if (r.call < 0 || r.call >= std::ssize(it->second.calls)) {
      parser_.fail("layer '", r.layer, "' has no call ", r.call);
    }
    return it->second;
  }

  // The tensors referred to, once the calls that make them are done.
  Tensors tensors(const References& references) {
    for_each_leaf(references, [&](const std::string&, const Reference& r) {
      if (!r.constant) complete(r);
    });
    return made(references);
  }

  Tensors made(const References& references) {
    return map_structure(references, [&](const Reference& r) -> TensorLike {
      if (r.constant) return *r.constant;
      const std::vector<TensorLike>& outputs = entry_of(r).calls[r.call].outputs;
      if (r.output < 0 || r.output >= std::ssize(outputs)) {
        parser_.fail("layer '", r.layer, "' has no output ", r.output);
      }
      return outputs[r.output];
    });
  }

  // Makes the call and those it needs, depth first, without recursion: graphs may be deep.
  void complete(const Reference& wanted) {
    std::vector<Reference> path = {wanted};
    while (!path.empty()) {
      const Reference r = path.back();
      Entry& entry = entry_of(r);
      Call& call = entry.calls[r.call];
      if (call.state == Call::State::kNew) {
        call.state = Call::State::kActive;
        for (const Reference& needed : needs(r, call)) {
          const Call::State state = entry_of(needed).calls[needed.call].state;
          if (state == Call::State::kActive) {
            parser_.fail("layer '", r.layer, "' depends on its own result");
          }
          if (state == Call::State::kNew) path.push_back(needed);
        }
        continue;
      }
      path.pop_back();
      if (call.state == Call::State::kActive) {
        run(r.layer, entry, call);
        call.state = Call::State::kDone;
      }
    }
  }

  // The calls before it: those of its inputs, and the one before of the same layer, so that calls
  // keep their numbers.
  std::vector<Reference> needs(const Reference& r, const Call& call) {
    std::vector<Reference> out = flatten(call.inputs);
    if (has_mask(call)) out.insert(out.end(), call.how.masks.begin(), call.how.masks.end());
    std::erase_if(out, [](const Reference& input) { return input.constant.has_value(); });
    if (r.call > 0) out.push_back({.layer = r.layer, .call = r.call - 1});
    return out;
  }

  // Whether the masks of a call are somebody's own: those that operators compute are what layers
  // here find out themselves.
  bool has_mask(const Call& call) {
    return !call.how.masks.empty() &&
           std::ranges::none_of(call.how.masks, [&](const Reference& mask) {
             const auto it = entries_.find(mask.layer);
             return it != entries_.end() && it->second.is_operator;
           });
  }

  Tensors inputs_of(const Call& call) {
    const Tensors inputs = made(call.inputs);
    if (!has_mask(call)) return inputs;
    size_t leaf = 0;
    return map_structure(inputs, [&](const TensorLike& input) -> TensorLike {
      const size_t i = leaf++;
      if (i >= call.how.masks.size()) return input;
      return input.tensor().with_mask(made(call.how.masks[i]).tensor());
    });
  }

  void run(const std::string& name, Entry& entry, Call& call) {
    if (entry.is_operator) {
      const OperatorCall how = layer_for_operator("Functional " + name_, entry.class_name,
                                                  operator_config(name, entry), inputs_of(call));
      entry.layer = layers::deserialize(how.layer);
      call.outputs = flatten((*entry.layer)->replay(how.inputs, {}));
      return;
    }
    if (!entry.layer) entry.layer = make(name, entry);
    Layer& layer = **entry.layer;
    if (auto* input = dynamic_cast<InputLayer*>(&layer)) {
      call.outputs = {input->make_output()};
    } else {
      call.outputs = flatten(layer.replay(inputs_of(call), call.how.options));
    }
  }

  Config operator_config(const std::string& name, const Entry& entry) const {
    Config config = parser_.field(*entry.config, "config");
    if (!config.is_dict()) config = Config::dict();
    config.set("name", name);
    return config;
  }

  LayerHandle<Layer> make(const std::string& name, const Entry& entry) const {
    Config config = parser_.field(*entry.config, "config");
    if (!config.is_dict()) parser_.fail("the config of layer '", name, "' is no dict");
    if (config.find("name") == nullptr) config.set("name", name);
    return layers::deserialize(
        Config::dict({{"class_name", entry.class_name}, {"config", std::move(config)}}));
  }

  const std::string name_;
  const Parser parser_;
  std::map<std::string, Entry> entries_;
  References inputs_, outputs_;
};

}  // namespace

LayerHandle<FunctionalModel> FunctionalModel::from_config(const Config& config) {
  const Parser parser("Functional");
  std::string name;
  if (config.is_dict() && config.find("name") != nullptr) name = parser.text(config, "name");
  Functional model(Reader(config, name).read());
  const Config* const trainable = config.find("trainable");
  if (trainable != nullptr && trainable->is_bool() && !trainable->boolean()) {
    model->set_trainable(false);
  }
  return model;
}

}  // namespace keel
