// FunctionalModel::from_config: graphs as Keras 2 and Keras 3 write them.
#include <algorithm>
#include <map>
#include <set>

#include "layers/functional.h"
#include "layers/registry.h"

namespace keel {
namespace {

// Output `output` of call `call` of a layer; calls are counted from 0 once a graph is read.
struct Reference {
  std::string layer;
  int64_t call = 0;
  int64_t output = 0;
  CallOptions options = {};  // of the call that takes it
};
using References = Nest<Reference>;

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
  std::pair<References, CallOptions> call(const Config& node) const {
    if (node.is_dict() && node.find("args") != nullptr) {
      const CallOptions options = keywords(field(node, "kwargs"));
      const Config::List& arguments = list(node, "args");
      return {structure(arguments.size() == 1 ? arguments[0] : Config(arguments)), options};
    }
    References inputs = unwrapped(structure(node));
    // Keras 2 has the keywords behind each tensor; those of the last one count.
    CallOptions options;
    for (const Reference& r : flatten(inputs)) options = r.options;
    return {std::move(inputs), options};
  }

  // Inputs or outputs of the model.
  References ends(const Config& config) const { return unwrapped(structure(config)); }

 private:
  static bool is_reference(const Config& config) {
    return config.is_list() && !config.items().empty() && config.items()[0].is_string();
  }

  References structure(const Config& config) const {
    if (is_reference(config)) return reference(config);
    if (config.is_list()) return References::list(children(config.items()));
    if (!config.is_dict()) {
      throw NotImplementedError(who_, ": a layer is called with the constant ", to_json(config));
    }
    if (is_class(config, "__keras_tensor__")) {
      return reference(field(field(config, "config"), "keras_history"));
    }
    if (is_class(config, "__tuple__")) return References::tuple(children(list(config, "items")));
    References::Dict out;
    for (const auto& [key, child] : config.entries()) out.emplace(key, structure(child));
    return out;
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
    if (items[0].string() == "_CONSTANT_VALUE") {
      throw NotImplementedError(who_, ": a layer is called with the constant ", to_json(items[2]));
    }
    if (!items[1].is_integer() || !items[2].is_integer()) {
      fail("expected [layer, call, output], received ", to_json(config));
    }
    return {items[0].string(), items[1].integer(), items[2].integer(),
            items.size() == 4 ? keywords(items[3]) : CallOptions{}};
  }

  // Layers here take no masks: ragged tensors have no padding to hide.
  CallOptions keywords(const Config& config) const {
    if (!config.is_dict()) fail("expected keyword arguments, received ", to_json(config));
    CallOptions out;
    for (const auto& [key, value] : config.entries()) {
      if (key == "mask" || value.is_null()) continue;
      if (key == "training" && value.is_bool()) {
        out.training = value.boolean();
        continue;
      }
      throw NotImplementedError(who_, ": a layer is called with the argument '", key, "'");
    }
    return out;
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
  CallOptions options = {};
  enum class State { kNew, kActive, kDone } state = State::kNew;
  std::vector<TensorLike> outputs = {};  // when done
};

struct Entry {
  const Config* config = nullptr;
  std::string class_name;
  std::optional<LayerHandle<Layer>> layer = {};  // made when its first call is
  std::vector<Call> calls = {};

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
    Entry entry{.config = &config, .class_name = parser_.text(config, "class_name")};
    for (const Config& node : parser_.list(config, "inbound_nodes")) {
      // An operation that only makes a mask may take what layers here do not.
      if (is_mask_operation(entry.class_name)) break;
      auto [inputs, how] = parser_.call(node);
      entry.calls.push_back({.inputs = std::move(inputs), .options = how});
    }
    if (entry.is_input()) {
      if (!entry.calls.empty()) parser_.fail("input layer '", name, "' has inputs");
      entry.calls.emplace_back();
    }
    if (!entries_.emplace(name, std::move(entry)).second) {
      parser_.fail("two layers are named '", name, "'");
    }
  }

  static bool is_mask_operation(const std::string& class_name) { return class_name == "NotEqual"; }

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
      for (Call& call : entry.calls) collect(call.inputs, layer, out);
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
    for_each_leaf(references, [&](const std::string&, const Reference& r) { complete(r); });
    return made(references);
  }

  Tensors made(const References& references) {
    return map_structure(references, [&](const Reference& r) -> TensorLike {
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
  static std::vector<Reference> needs(const Reference& r, const Call& call) {
    std::vector<Reference> out = flatten(call.inputs);
    if (r.call > 0) out.push_back({.layer = r.layer, .call = r.call - 1});
    return out;
  }

  void run(const std::string& name, Entry& entry, Call& call) {
    if (!entry.layer) entry.layer = make(name, entry);
    Layer& layer = **entry.layer;
    if (auto* input = dynamic_cast<InputLayer*>(&layer)) {
      call.outputs = {input->make_output()};
    } else {
      call.outputs = flatten(layer.replay(made(call.inputs), call.options));
    }
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
