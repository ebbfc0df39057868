#include "layers/layer.h"

#include <algorithm>

#include "autodiff/tape.h"
#include "layers/naming.h"

namespace keel {
namespace {

// What layers called inside another one inherit; empty outside any.
thread_local std::optional<bool> inherited_training;

class TrainingScope {
 public:
  explicit TrainingScope(bool training) : previous_(inherited_training) {
    inherited_training = training;
  }
  ~TrainingScope() { inherited_training = previous_; }
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;

 private:
  const std::optional<bool> previous_;
};

std::string checked_name(const std::string& class_name, const std::string& name) {
  if (name.empty()) return unique_layer_name(class_name);
  if (name.find('/') != std::string::npos) {
    throw ValueError(class_name, ": a layer's name must not contain '/', received '", name, "'");
  }
  return name;
}

Tensors symbolic_like(const Specs& specs) {
  return map_structure(
      specs, [](const TensorSpec& spec) -> TensorLike { return make_symbolic(spec, nullptr, 0); });
}

}  // namespace

Layer::Layer(std::string class_name, std::string& name, bool trainable, DType dtype)
    : class_name_(std::move(class_name)),
      name_(checked_name(class_name_, name)),
      dtype_(dtype),
      trainable_(trainable) {
  name = name_;
}

Layer::Layer(std::string class_name, std::string name)
    : class_name_(std::move(class_name)), name_(checked_name(class_name_, name)) {}

void Layer::build_once(const Specs& inputs) {
  if (built_) return;
  const std::lock_guard lock(build_mutex_);
  if (built_) return;
  const NoGradient pause;
  const size_t weights = weights_.size();
  const size_t states = states_.size();
  try {
    build_weights(inputs);
  } catch (...) {
    weights_.resize(weights);
    states_.resize(states);
    throw;
  }
  built_ = true;
}

Tensors Layer::operator()(const Tensors& inputs, const CallOptions& options) {
  build_once(specs_of(inputs));
  const bool training = options.training.value_or(inherited_training.value_or(false));
  const TrainingScope scope(training);
  if (!any_symbolic(inputs)) return call(inputs, {.training = training});
  Specs specs;
  {
    const NoNodes one_node_for_all;
    specs = specs_of(call(inputs, {.training = training}));
  }
  return make_outputs(shared_from_this(), inputs, specs, options);
}

Tensor Layer::operator()(const Tensor& input, const CallOptions& options) {
  return (*this)(Tensors(input), options).tensor();
}

void Layer::build(const Specs& inputs) { compute_output_spec(inputs); }

Specs Layer::compute_output_spec(const Specs& inputs) {
  const NoNodes no_graph;
  const NoGradient pause;
  return specs_of((*this)(symbolic_like(inputs)));
}

void Layer::set_trainable(bool trainable) {
  trainable_ = trainable;
  for (const auto& layer : sublayers_) layer->set_trainable(trainable);
}

void Layer::collect(Which which, bool parents_trainable, std::vector<const Layer*>& seen,
                    std::vector<Variable>& out) const {
  if (std::ranges::find(seen, this) != seen.end()) return;
  seen.push_back(this);
  const bool trains = parents_trainable && trainable_;
  if (which == Which::kState) {
    out.insert(out.end(), states_.begin(), states_.end());
  } else {
    for (const Variable& v : weights_) {
      const bool is_trainable = trains && v.trainable();
      if (is_trainable == (which == Which::kTrainable)) out.push_back(v);
    }
  }
  for (const auto& layer : sublayers_) layer->collect(which, trains, seen, out);
}

std::vector<Variable> Layer::trainable_variables() const {
  std::vector<Variable> out;
  std::vector<const Layer*> seen;
  collect(Which::kTrainable, true, seen, out);
  return out;
}

std::vector<Variable> Layer::non_trainable_variables() const {
  std::vector<Variable> out;
  std::vector<const Layer*> seen;
  collect(Which::kNonTrainable, true, seen, out);
  return out;
}

std::vector<Variable> Layer::weights() const {
  std::vector<Variable> out = trainable_variables();
  const std::vector<Variable> others = non_trainable_variables();
  out.insert(out.end(), others.begin(), others.end());
  return out;
}

std::vector<Variable> Layer::variables() const {
  std::vector<Variable> out = weights();
  std::vector<const Layer*> seen;
  collect(Which::kState, true, seen, out);
  return out;
}

int64_t Layer::count_params() const {
  int64_t count = 0;
  for (const Variable& v : weights()) {
    if (!v.is_virtual()) count += v.shape().size();
  }
  return count;
}

Variable Layer::add_weight(const WeightOptions& options) {
  Variable variable(options.initializer(options.shape, options.dtype),
                    {.name = options.name,
                     .trainable = options.trainable,
                     .synchronization = options.synchronization,
                     .aggregation = options.aggregation});
  return add_weight(std::move(variable));
}

Variable Layer::add_weight(Variable variable) {
  variable.set_path(name_ + "/" + variable.name());
  weights_.push_back(variable);
  return variable;
}

Variable Layer::add_state(Variable variable) {
  variable.set_path(name_ + "/" + variable.name());
  states_.push_back(variable);
  return variable;
}

std::vector<StateEntry> Layer::state_entries() const {
  std::vector<StateEntry> out;
  const auto add = [&](const Variable& v, StateEntry::Kind kind) {
    if (v.is_virtual()) return;
    out.push_back({.name = v.name(),
                   .spec = v.spec(),
                   .kind = kind,
                   .trainable = trainable_ && v.trainable(),
                   .get =
                       [v] {
                         const NoGradient pause;
                         return v.read();
                       },
                   .set = [v](const Tensor& value) { v.assign(value); },
                   .variable_id = v.id()});
  };
  for (const Variable& v : weights_) add(v, StateEntry::Kind::kWeight);
  for (const Variable& v : states_) add(v, StateEntry::Kind::kRandomState);
  return out;
}

Config Layer::get_config() const {
  throw NotImplementedError(class_name_, ": has no get_config(), so a file cannot describe it");
}

void TensorLayer::build_weights(const Specs& inputs) { build_weights(inputs.leaf()); }

Tensors TensorLayer::call(const Tensors& inputs, const CallContext& context) {
  return call(inputs.tensor(), context);
}

}  // namespace keel
