#include <keel/layers/functional/functional.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <keel/layers/functional/internal/functional_order.h>
#include <keel/layers/internal/input_context.h>
#include <keel/layers/internal/naming.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

// Identifies a result of a node by the node and the position among its outputs.
using ResultKey = std::pair<const GraphNode*, int>;

ResultKey key_of(const TensorLike& t) {
  return {t.values().producer().get(), t.values().producer_output()};
}

// Returns the name of the layer, or the class of the op, that returned a tensor.
std::string producer_name(const TensorLike& t) {
  const Operation& operation = *t.values().producer()->operation;
  const auto* const layer = dynamic_cast<const Layer*>(&operation);
  return layer != nullptr ? layer->name() : operation.class_name();
}

void check_inputs(const std::string& model, const Tensors& inputs) {
  std::set<ResultKey> seen;
  for_each_leaf(inputs, [&](const std::string& path, const TensorLike& input) {
    const bool from_input =
        input.is_symbolic() && input.values().producer() != nullptr &&
        dynamic_cast<const InputLayer*>(input.values().producer()->operation.get()) != nullptr;
    if (!from_input) {
      throw ValueError(model, ": input '", path,
                       "' is not a result of layers::input; create it with layers::input, "
                       "ragged_input or sparse_input");
    }
    if (!seen.insert(key_of(input)).second) {
      throw ValueError(model, ": input '", path, "' is listed twice; list each input once");
    }
  });
}

// Checks that a tensor passed to the model fits the declared input.
void check_fits(const std::string& model, const std::string& path, const TensorSpec& expected,
                const TensorSpec& received) {
  if (expected.layout != received.layout) {
    constexpr const char* kNames[] = {"dense", "ragged", "sparse"};
    throw TypeError(model, ": input '", path, "' must be ",
                    kNames[static_cast<int>(expected.layout)], ", received a ",
                    kNames[static_cast<int>(received.layout)], " tensor");
  }
  if (!compatible(expected.shape, received.shape)) {
    throw ValueError(model, ": input '", path, "' must have shape ", expected.shape, ", received ",
                     received.shape);
  }
  if (is_floating(expected.dtype) != is_floating(received.dtype) &&
      (expected.dtype == DType::kString || received.dtype == DType::kString)) {
    throw TypeError(model, ": input '", path, "' must be ", expected.dtype, ", received ",
                    received.dtype);
  }
}

// Removes the dict keys that the model does not have, so that a batch with more columns can be
// passed unchanged.
template <class T>
Nest<T> without_extra_keys(const Tensors& expected, const Nest<T>& received) {
  if (!expected.is_dict() || !received.is_dict()) return received;
  typename Nest<T>::Dict kept;
  for (const auto& [key, child] : received.entries()) {
    const auto it = expected.entries().find(key);
    if (it != expected.entries().end()) kept.emplace(key, without_extra_keys(it->second, child));
  }
  return Nest<T>(std::move(kept));
}

// Returns the value of a dict with one entry, under any name, if the model has one input; null
// otherwise.
template <class T>
const Nest<T>* only_input(const Tensors& expected, const Nest<T>& received) {
  if (flatten(expected).size() != 1 || !received.is_dict() || received.entries().size() != 1) {
    return nullptr;
  }
  const Nest<T>& value = received.entries().begin()->second;
  return value.is_leaf() ? &value : nullptr;
}

// Converts a dict by input name to the tensor, list or tuple that the model expects; returns
// anything else unchanged.
template <class T>
Nest<T> by_names(const Tensors& expected, const Nest<T>& received) {
  if (!received.is_dict()) return received;
  if (expected.is_dict()) {
    const Nest<T>* const only = only_input(expected, received);
    const bool renamed = only != nullptr && expected.entries().size() == 1 &&
                         expected.entries().begin()->second.is_leaf();
    if (!renamed) return received;
    return Nest<T>(typename Nest<T>::Dict{{expected.entries().begin()->first, *only}});
  }
  const auto find = [&](const Tensors& input) -> const Nest<T>* {
    if (!input.is_leaf()) return nullptr;
    const auto it = received.entries().find(producer_name(input.leaf()));
    return it != received.entries().end() ? &it->second : only_input(expected, received);
  };
  if (expected.is_leaf()) {
    const Nest<T>* const found = find(expected);
    return found == nullptr ? received : *found;
  }
  typename Nest<T>::Items items;
  for (const Tensors& input : expected.items()) {
    const Nest<T>* const found = find(input);
    if (found == nullptr) return received;
    items.push_back(*found);
  }
  return expected.kind() == NestKind::kTuple ? Nest<T>::tuple(std::move(items))
                                             : Nest<T>::list(std::move(items));
}

template <class T>
std::string described(const Nest<T>& nest) {
  if (nest.is_leaf()) return "a tensor";
  return nest.is_dict() ? "a dict " + nest.structure() : nest.structure();
}

// Converts the inputs of a call to the structure of the model's inputs, or throws.
template <class T>
Nest<T> taken(const std::string& model, const Tensors& expected, const Nest<T>& received) {
  Nest<T> kept = without_extra_keys(expected, by_names(expected, received));
  const auto message = [&] {
    std::string wanted = described(expected);
    if (!expected.is_dict()) {  // the keys of a dict are already in the message
      std::string names;
      for (const TensorLike& input : flatten(expected)) {
        names += (names.empty() ? "'" : ", '") + producer_name(input) + "'";
      }
      wanted += (expected.is_leaf() ? " (input " : " (inputs ") + names + ")";
    }
    return absl::StrCat(model, ": must be called with ", wanted, ", received ",
                        described(received));
  };
  try {
    assert_same_structure(expected, kept);
  } catch (const TypeError&) {
    throw TypeError(message());
  } catch (const ValueError&) {
    throw ValueError(message());
  }
  return kept;
}

}  // namespace

// Numbers all results of nodes. Each step reads results by number and writes the following numbers.
struct FunctionalModel::Plan {
  // Returns the plan that runs `calls` in this order. Throws ValueError, starting with `model`, if
  // `outputs` depend on an input layer that is not among `inputs`.
  static std::shared_ptr<const Plan> of(const std::string& model, const Tensors& inputs,
                                        const Tensors& outputs,
                                        const std::vector<std::shared_ptr<const GraphNode>>& calls);

  struct Step {
    std::shared_ptr<Operation> operation;
    CallOptions options;
    Nest<int> inputs;                             // result numbers; constants are numbered too
    std::vector<std::pair<int, int>> masks = {};  // position of an input, number of its mask
    int first_output = 0, outputs = 0;            // the numbers of its own results
    std::vector<int> last_use = {};               // results that no later step reads
    std::vector<std::string> sources = {};        // the model inputs on which the results depend
  };
  int results = 0;
  std::vector<Step> steps;
  std::vector<int> inputs;
  Nest<int> outputs;
  std::vector<std::pair<int, TensorLike>> constants;
  // Layers that prefetch() calls, with the numbers of their inputs.
  std::vector<std::pair<std::shared_ptr<Layer>, Nest<int>>> first_layers;
};

namespace {

using ResultNumbers = std::map<ResultKey, int>;

// Returns the inputs of a step with the explicit masks attached.
template <class Step, class Result>
Tensors inputs_of(const Step& step, const Result& result) {
  Tensors inputs = map_structure(step.inputs, result);
  if (step.masks.empty()) return inputs;
  int position = 0;
  return map_structure(inputs, [&](const TensorLike& input) -> TensorLike {
    const int at = position++;
    for (const auto& [masked, mask] : step.masks) {
      if (masked == at) return input.tensor().with_mask(result(mask).tensor());
    }
    return input;
  });
}

// Returns the layers that are called once, directly on model inputs, with the numbers of these
// inputs. Results numbered below `inputs` are model inputs.
template <class Step>
std::vector<std::pair<std::shared_ptr<Layer>, Nest<int>>> layers_on_inputs(
    const std::vector<Step>& steps, int64_t inputs) {
  std::vector<std::pair<std::shared_ptr<Layer>, Nest<int>>> out;
  std::unordered_map<const Operation*, int> calls;
  for (const Step& step : steps) ++calls[step.operation.get()];
  for (const Step& step : steps) {
    const auto layer = std::dynamic_pointer_cast<Layer>(step.operation);
    const std::vector<int> numbers = flatten(step.inputs);
    const bool on_inputs = std::ranges::all_of(numbers, [&](int n) { return n < inputs; });
    if (layer && calls[layer.get()] == 1 && on_inputs) out.emplace_back(layer, step.inputs);
  }
  return out;
}

// Checks that a call returns as many tensors as when the graph was made.
void check_count(const std::string& model, const Operation& operation, size_t returned,
                 int expected) {
  if (std::cmp_equal(returned, expected)) return;
  throw ValueError(model, ": a call of ", operation.class_name(), " returned ", returned,
                   " tensors, but returned ", expected,
                   " when the model was made; return the same structure in every call");
}

bool has_repeated_calls(const std::vector<std::shared_ptr<const GraphNode>>& nodes) {
  std::set<const Operation*> seen;
  return std::ranges::any_of(
      nodes, [&](const auto& node) { return !seen.insert(node->operation.get()).second; });
}

}  // namespace

std::shared_ptr<const FunctionalModel::Plan> FunctionalModel::Plan::of(
    const std::string& model, const Tensors& inputs, const Tensors& outputs,
    const std::vector<std::shared_ptr<const GraphNode>>& calls) {
  auto plan = std::make_shared<Plan>();
  ResultNumbers numbers;
  for (const TensorLike& input : flatten(inputs)) {
    plan->inputs.push_back(plan->results);
    numbers[key_of(input)] = plan->results++;
  }
  std::map<int, std::set<std::string>> sources;  // of results
  for (const TensorLike& input : flatten(inputs)) {
    sources[numbers.at(key_of(input))] = {producer_name(input)};
  }
  std::map<int, int> last_reader;  // result -> step
  const auto number_of = [&](const TensorLike& t) {
    if (!t.is_symbolic()) {
      plan->constants.emplace_back(plan->results, t);
      return plan->results++;
    }
    const auto it = numbers.find(key_of(t));
    if (it == numbers.end()) {
      throw ValueError(model, ": the outputs depend on input layer '", producer_name(t),
                       "', which is not an input of the model; add it to the inputs");
    }
    return it->second;
  };
  for (const auto& node : calls) {
    if (dynamic_cast<const InputLayer*>(node->operation.get()) != nullptr) continue;
    Plan::Step step{.operation = node->operation,
                    .options = node->options,
                    .inputs = map_structure(node->inputs, number_of)};
    const std::vector<TensorLike> leaves = flatten(node->inputs);
    for (size_t i = 0; i < leaves.size(); ++i) {
      const Tensor mask = leaves[i].values().mask();
      if (!mask || (mask.is_symbolic() && mask.producer() == nullptr)) continue;
      if (!leaves[i].is_symbolic()) continue;  // a constant carries its mask
      step.masks.emplace_back(static_cast<int>(i), number_of(mask));
    }
    std::set<std::string> read;
    for (int n : flatten(step.inputs)) {
      last_reader[n] = static_cast<int>(plan->steps.size());
      read.insert(sources[n].begin(), sources[n].end());
    }
    // Layers that take a dict name its features themselves.
    if (!step.inputs.is_dict()) step.sources.assign(read.begin(), read.end());
    for (const auto& [_, n] : step.masks) last_reader[n] = static_cast<int>(plan->steps.size());
    // Constants among the inputs and masks have taken numbers, so the results follow them.
    step.first_output = plan->results;
    step.outputs = static_cast<int>(flatten_paths(node->output_specs).size());
    for (int i = 0; i < step.outputs; ++i) {
      sources[plan->results] = read;
      numbers[{node.get(), i}] = plan->results++;
    }
    plan->steps.push_back(std::move(step));
  }
  plan->outputs = map_structure(outputs, number_of);
  for (int n : flatten(plan->outputs)) last_reader.erase(n);
  for (const auto& [n, _] : plan->constants) last_reader.erase(n);
  for (const auto& [n, step] : last_reader) plan->steps[step].last_use.push_back(n);
  plan->first_layers = layers_on_inputs(plan->steps, std::ssize(plan->inputs));
  return plan;
}

FunctionalModel::FunctionalModel(Options options)
    : Model(kClassName, options), inputs_(options.inputs), outputs_(options.outputs) {
  check_inputs(name(), inputs_);
  nodes_ = topological_order(outputs_);
  // Layers that update state in each call, such as BatchNormalization, end with the same state as
  // in Keras only if repeated calls run in Keras's order.
  std::vector<std::shared_ptr<const GraphNode>> calls = nodes_;
  if (has_repeated_calls(nodes_)) {
    std::vector<std::shared_ptr<const GraphNode>> ordered = calls_by_depth(outputs_);
    if (ordered.size() == nodes_.size()) calls = std::move(ordered);
  }

  plan_ = Plan::of(name(), inputs_, outputs_, calls);

  std::set<std::string> names;
  for (const auto& operation : order_by_depth(inputs_, outputs_)) {
    const auto layer = std::dynamic_pointer_cast<Layer>(operation);
    if (layer == nullptr) continue;
    if (!names.insert(layer->name()).second) {
      throw ValueError(name(), ": two layers are named '", layer->name(), "'; rename one of them");
    }
    layers_.push_back(track(LayerHandle<Layer>(kAdopt, layer)));
  }
}

Tensors FunctionalModel::call(const Tensors& inputs, const CallContext&) {
  const Tensors received = taken(name(), inputs_, inputs);
  std::vector<std::optional<TensorLike>> results(plan_->results);
  const std::vector<TensorLike> declared = flatten(inputs_);
  size_t i = 0;
  for_each_leaf(received, [&](const std::string& path, const TensorLike& value) {
    check_fits(name(), path, declared[i].spec(), value.spec());
    results[plan_->inputs[i++]] = value;
  });
  for (const auto& [number, value] : plan_->constants) results[number] = value;
  const auto result = [&](int number) { return results[number].value(); };
  const auto run = [&](const Plan::Step& step) {
    try {
      return step.operation->replay(inputs_of(step, result), step.options);
    } catch (const InvalidIdError& error) {
      throw_for_inputs(step.sources, error);
    }
  };
  for (const Plan::Step& step : plan_->steps) {
    const std::vector<TensorLike> outputs = flatten(run(step));
    check_count(name(), *step.operation, outputs.size(), step.outputs);
    std::ranges::copy(outputs, results.begin() + step.first_output);
    for (int dead : step.last_use) results[dead].reset();
  }
  return map_structure(plan_->outputs, result);
}

bool FunctionalModel::supports_prefetch() const {
  return std::ranges::any_of(plan_->first_layers,
                             [](const auto& entry) { return entry.first->supports_prefetch(); });
}

void FunctionalModel::prefetch(const Tensors& inputs) {
  std::vector<TensorLike> received;
  try {
    received = flatten(taken(name(), inputs_, inputs));
  } catch (const Error&) {
    return;  // the call itself reports the error
  }
  std::vector<std::optional<TensorLike>> results(plan_->results);
  for (size_t i = 0; i < received.size(); ++i) results[plan_->inputs[i]] = received[i];
  for (const auto& [layer, numbers] : plan_->first_layers) {
    if (!layer->supports_prefetch()) continue;
    layer->prefetch(map_structure(numbers, [&](int number) { return results[number].value(); }));
  }
}

std::optional<ModelInputs> FunctionalModel::symbolic_inputs() const {
  ModelInputs out{.tensors = inputs_};
  for (const TensorLike& input : flatten(inputs_)) {
    out.names.push_back(dynamic_cast<const Layer&>(*input.values().producer()->operation).name());
  }
  return out;
}

std::vector<std::string> FunctionalModel::output_layer_names() const {
  std::vector<std::string> out;
  for (const TensorLike& output : flatten(outputs_)) {
    const Operation& operation = *output.values().producer()->operation;
    const auto* layer = dynamic_cast<const Layer*>(&operation);
    out.push_back(layer != nullptr ? layer->name() : to_snake_case(operation.class_name()));
  }
  return out;
}

std::optional<PlanValues> FunctionalModel::plan(Planner& planner, const PlanValues& inputs) const {
  for (const Plan::Step& step : plan_->steps) {
    if (!step.masks.empty()) return {};
  }
  const std::vector<PlanValue> given = flatten(taken(name(), inputs_, inputs));
  std::vector<PlanValue> results(plan_->results);
  for (size_t i = 0; i < given.size(); ++i) results[plan_->inputs[i]] = given[i];
  for (const auto& [number, value] : plan_->constants) results[number] = planner.constant(value);
  const auto result = [&](int number) { return results[number]; };
  for (const Plan::Step& step : plan_->steps) {
    const std::vector<PlanValue> outputs =
        flatten(planner.call(step.operation, map_structure(step.inputs, result), step.options));
    check_count(name(), *step.operation, outputs.size(), step.outputs);
    std::ranges::copy(outputs, results.begin() + step.first_output);
  }
  return map_structure(plan_->outputs, result);
}

namespace internal {

// The name that KEEL_REGISTER would give it.
// NOLINTBEGIN(readability-identifier-naming)
void register_FunctionalModel(Registry<Layer>& registry);
void register_FunctionalModel(Registry<Layer>& registry) {
  // NOLINTEND(readability-identifier-naming)
  const auto make = [](const Config& config) {
    return FunctionalModel::from_config(config).shared();
  };
  const ClassTraits traits{.package = "keras", .call = "inputs, training, mask"};
  registry.add(FunctionalModel::kClassName, make, traits);
  registry.add("Model", make, traits);  // class name in Keras files
}

}  // namespace internal
}  // namespace keel
