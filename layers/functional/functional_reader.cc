// FunctionalModel::from_config: reads graphs as Keras 2 and Keras 3 write them.
#include <algorithm>
#include <map>
#include <set>

#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/internal/functional_nodes.h>
#include <keel/layers/functional/internal/functional_operators.h>
#include <keel/layers/internal/keras_keys.h>
#include <keel/layers/internal/shared_layers.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

using Reference = GraphReference;
using References = GraphReferences;

// One call of a layer.
struct Call {
  References inputs;
  CallOptions options = {};
  Config arguments = {};  // of an operator
  enum class State { kNew, kActive, kDone } state = State::kNew;
  std::vector<TensorLike> outputs = {};  // set in state kDone
};

// An entry of the config's list of layers.
struct Entry {
  const Config* config = nullptr;
  std::string class_name;
  std::optional<LayerHandle<Layer>> layer = {};  // created with its first call
  std::vector<Call> calls = {};

  bool is_operator = false;  // an operator of Keras 3, not a layer

  bool is_input() const { return class_name == "InputLayer"; }
  bool is_functional() const { return class_name == "Functional" || class_name == "Model"; }
  bool is_model() const { return is_functional() || class_name == "Sequential"; }
};

// Reads a config and replays its calls on symbolic tensors.
class Reader {
 public:
  Reader(const Config& config, std::string name)
      : name_(std::move(name)), parser_("Functional " + name_) {
    for (const Config& layer : parser_.list(config, "layers")) add(layer);
    inputs_ = parser_.ends(parser_.field(config, "input_layers"));
    outputs_ = parser_.ends(parser_.field(config, "output_layers"));
    if (flatten(outputs_).empty()) parser_.fail("the model has no outputs");
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
      entry.calls.push_back(entry.is_operator
                                ? operator_call(node)
                                : layer_call(node, name, class_from_keras(entry.class_name)));
    }
    if (entry.is_input()) {
      if (!entry.calls.empty()) parser_.fail("input layer '", name, "' must not have inputs");
      entry.calls.emplace_back();
    }
    if (!entries_.emplace(name, std::move(entry)).second) {
      parser_.fail("two layers are named '", name, "'");
    }
  }

  Call layer_call(const Config& node, const std::string& name,
                  const std::string& class_name) const {
    GraphCall read = parser_.call(node, name, class_name);
    return {.inputs = std::move(read.inputs), .options = read.options};
  }

  // Parses a call of an operator. Unsupported arguments are rejected when the call runs: they do
  // not matter if the operator only computes a mask.
  Call operator_call(const Config& node) const {
    OperatorNode read = parser_.operator_call(node);
    return {.inputs = std::move(read.tensors), .arguments = std::move(read.arguments)};
  }

  // Renumbers the calls of nested models from 0. Keras 2 counts them from 1 everywhere, Keras 3
  // from 1 only for a Functional among the outputs. Chooses the interpretation in which every
  // reference refers to an existing call; among several, the one in which all calls are used.
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

  // Collects the references to the layer in a structure, including those in masks.
  static void collect(References& structure, const std::string& layer,
                      std::vector<Reference*>& out) {
    for_each_leaf(structure, [&](const std::string&, const Reference& r) {
      if (r.layer == layer) out.push_back(const_cast<Reference*>(&r));
      if (r.mask != nullptr && r.mask->layer == layer) out.push_back(r.mask.get());
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
    if (it == entries_.end()) parser_.fail("no layer is named '", r.layer, "'");
    if (r.call < 0 || r.call >= std::ssize(it->second.calls)) {
      parser_.fail("layer '", r.layer, "' has no call ", r.call);
    }
    return it->second;
  }

  // Returns the referenced tensors after running the calls that produce them.
  Tensors tensors(const References& references) {
    for_each_leaf(references, [&](const std::string&, const Reference& r) {
      if (!r.constant) complete(r);
    });
    return made(references);
  }

  Tensors made(const References& references) {
    return map_structure(references, [&](const Reference& r) -> TensorLike {
      TensorLike out = made(r);
      if (!has_mask(r)) return out;
      const Tensor mask = made(*r.mask).tensor();
      return out.tensor().with_mask(r.mask->constant ? mask.cast(DType::kBool) : mask);
    });
  }

  TensorLike made(const Reference& r) {
    if (r.constant) return *r.constant;
    const std::vector<TensorLike>& outputs = entry_of(r).calls[r.call].outputs;
    if (r.output < 0 || r.output >= std::ssize(outputs)) {
      parser_.fail("layer '", r.layer, "' has no output ", r.output);
    }
    return outputs[r.output];
  }

  // Runs a call and the calls it depends on. Uses an explicit stack instead of recursion, because
  // graphs may be deep.
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

  // Returns the calls that must run before this call: the producers of its inputs, and the previous
  // call of the same layer, so that calls keep their numbers.
  std::vector<Reference> needs(const Reference& r, const Call& call) {
    std::vector<Reference> out;
    for (const Reference& input : flatten(call.inputs)) {
      if (!input.constant) out.push_back(input);
      if (has_mask(input) && !input.mask->constant) out.push_back(*input.mask);
    }
    if (r.call > 0) out.push_back({.layer = r.layer, .call = r.call - 1});
    return out;
  }

  // Returns true if the mask was passed explicitly. Masks computed by operators are ignored,
  // because layers of this library compute them.
  bool has_mask(const Reference& r) const {
    if (r.mask == nullptr) return false;
    const auto it = entries_.find(r.mask->layer);
    return it == entries_.end() || !it->second.is_operator;
  }

  void run(const std::string& name, Entry& entry, Call& call) {
    if (entry.is_operator) {
      std::vector<Tensor> tensors;
      for (const TensorLike& t : flatten(made(call.inputs))) tensors.push_back(t.tensor());
      const OperatorCall how =
          layer_for_operator("Functional " + name_, entry.class_name, operator_config(name, entry),
                             call.arguments, tensors);
      entry.layer = layers::deserialize(how.layer);
      call.outputs = flatten((*entry.layer)->replay(how.inputs, {}));
      return;
    }
    if (!entry.layer) entry.layer = make(name, entry);
    Layer& layer = **entry.layer;
    if (auto* input = dynamic_cast<InputLayer*>(&layer)) {
      call.outputs = {input->make_output()};
    } else {
      call.outputs = flatten(layer.replay(made(call.inputs), call.options));
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
    if (!config.is_dict()) parser_.fail("the config of layer '", name, "' is not a dict");
    if (config.find("name") == nullptr) config.set("name", name);
    Config layer = Config::dict({{"class_name", entry.class_name}, {"config", std::move(config)}});
    const Config* const number = entry.config->find(kSharedObjectId);
    if (number != nullptr) layer.set(kSharedObjectId, *number);
    return layers::deserialize(layer);
  }

  const std::string name_;
  const GraphParser parser_;
  std::map<std::string, Entry> entries_;
  References inputs_, outputs_;
};

}  // namespace

LayerHandle<FunctionalModel> FunctionalModel::from_config(const Config& config) {
  const SharedLayerReader shared;
  const GraphParser parser("Functional");
  std::string name;
  const Config* const given = config.is_dict() ? config.find("name") : nullptr;
  if (given != nullptr && !given->is_null()) name = parser.text(config, "name");
  Functional model(Reader(config, name).read());
  const Config* const trainable = config.find("trainable");
  if (trainable != nullptr && trainable->is_bool() && !trainable->boolean()) {
    model->set_trainable(false);
  }
  return model;
}

}  // namespace keel
