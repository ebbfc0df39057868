#include <keel/layers/layer.h>

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <utility>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/internal/memory_error.h>
#include <keel/framework/sparse_functions.h>
#include <keel/layers/internal/activity_loss_scale.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/naming.h>

namespace keel {
namespace {

// The `training` value that layers called inside another layer inherit; empty outside of any call.
thread_local std::optional<bool> inherited_training;

// The losses passed to add_loss() on this thread since the last outermost call, each with the
// layer's number.
struct AddedLosses {
  int depth = 0;  // number of nested calls in progress
  std::vector<std::pair<uint64_t, Tensor>> all;
};
thread_local AddedLosses added_losses;

uint64_t next_number() {
  static std::atomic<uint64_t> counter = 1;
  return counter++;
}

bool any_masked(const Tensors& tensors) {
  bool any = false;
  for_each_leaf(tensors, [&](const std::string&, const TensorLike& t) {
    any = any || (t.layout() == Layout::kDense && t.tensor().mask());
  });
  return any;
}

// map_structure() over the dense leaves: calls fn(position among all leaves, tensor).
template <class Fn>
Tensors map_dense(const Tensors& tensors, const Fn& fn) {
  size_t leaf = 0;
  return map_structure(tensors, [&](const TensorLike& t) -> TensorLike {
    const size_t position = leaf++;
    return t.layout() == Layout::kDense ? TensorLike(fn(position, t.tensor())) : t;
  });
}

std::string checked_name(const std::string& class_name, const std::string& name) {
  if (name.empty()) return unique_layer_name(class_name);
  if (absl::StrContains(name, '/')) {
    throw ValueError(class_name, ": a layer's name must not contain '/', received '", name, "'");
  }
  return name;
}

Tensors with_masks(const Tensors& tensors, const std::vector<Tensor>& masks) {
  if (std::ranges::none_of(masks, [](const Tensor& mask) { return static_cast<bool>(mask); })) {
    return tensors;
  }
  return map_dense(tensors, [&](size_t leaf, const Tensor& x) {
    return leaf < masks.size() && masks[leaf] && !x.mask() ? x.with_mask(masks[leaf]) : x;
  });
}

Tensors without_masks(const Tensors& tensors) {
  return map_dense(tensors, [](size_t, const Tensor& x) { return x.with_mask(Tensor()); });
}

// Returns one mask for each leaf, in order; a leaf without a mask has an empty tensor.
std::vector<Tensor> masks_of(const Tensors& tensors) {
  std::vector<Tensor> out;
  for (const TensorLike& t : flatten(tensors)) {
    out.push_back(t.layout() == Layout::kDense ? t.tensor().mask() : Tensor());
  }
  return out;
}

Tensors symbolic_like(const Specs& specs) {
  return map_structure(
      specs, [](const TensorSpec& spec) -> TensorLike { return make_symbolic(spec, nullptr, 0); });
}

}  // namespace

Layer::Layer(std::string class_name, std::string& name, bool trainable, const DTypePolicy& dtype,
             bool quantizes)
    : class_name_(std::move(class_name)),
      name_(checked_name(class_name_, name)),
      number_(next_number()),
      dtype_policy_(dtype),
      trainable_(trainable) {
  if (dtype.quantized_weights() && !quantizes) {
    throw NotImplementedError(class_name_, " '", name_,
                              "': quantized weights, requested by dtype policy ", dtype.name(),
                              ", are not supported; choose another dtype policy");
  }
  name = name_;
}

Layer::Layer(std::string class_name, std::string name)
    : class_name_(std::move(class_name)),
      name_(checked_name(class_name_, name)),
      number_(next_number()) {}

Layer::~Layer() = default;

void Layer::build_once(const Specs& inputs) {
  if (built_) return;
  // Double-checked locking: built_ is atomic, so later calls do not take the lock.
  const std::lock_guard lock(build_mutex_);
  if (built_) return;
  const NoGradient pause;
  const size_t weights = weights_.size();
  const size_t states = states_.size();
  const size_t regularized = regularized_.size();
  try {
    // A failed build must leave no partial weights, so that the layer can be built again.
    build_weights(inputs);
  } catch (...) {
    weights_.resize(weights);
    states_.resize(states);
    regularized_.resize(regularized);
    throw;
  }
  built_ = true;
}

Tensors Layer::operator()(const Tensors& inputs, const CallOptions& options) {
  build_once(specs_of(inputs));
  const bool training = options.training.value_or(inherited_training.value_or(false));
  const absl::Cleanup restore = [before = std::exchange(inherited_training, training)] {
    inherited_training = before;
  };
  if (added_losses.depth == 0 && !added_losses.all.empty()) {
    // An outermost call discards the losses of this layer's previous call. Losses of other models
    // on this thread are kept.
    std::vector<uint64_t> numbers;
    add_numbers(numbers);
    std::erase_if(added_losses.all, [&](const auto& added) {
      return std::ranges::find(numbers, added.first) != numbers.end();
    });
  }
  ++added_losses.depth;
  const absl::Cleanup leave = [] { --added_losses.depth; };
  if (!any_symbolic(inputs)) return call_with_masks(inputs, {.training = training});
  Tensors outputs;
  {
    // The ops of call() are not recorded: the layer becomes one node of the graph.
    const NoGraphScope one_node_for_all;
    outputs = call_with_masks(inputs, {.training = training});
  }
  std::vector<Tensor> masks = masks_of(outputs);
  for (Tensor& mask : masks) {
    // A replay of the graph computes new masks.
    if (mask) mask = Tensor::symbolic(mask.spec());
  }
  return with_masks(make_outputs(shared_from_this(), inputs, specs_of(outputs), options), masks);
}

Tensors Layer::call_with_masks(const Tensors& inputs, const CallContext& context) {
  const bool masking = supports_masking();
  const AutocastScope products(product_operands(dtype_policy_));
  // A container passes masks on to its sublayers, even if it does not use them itself.
  const bool hide = !masking && sublayers_.empty() && any_masked(inputs);
  Tensors outputs = call(hide ? without_masks(inputs) : inputs, context);
  if (masking) outputs = with_masks(outputs, compute_mask(inputs, outputs));
  if (activity_regularizer_) {
    for_each_leaf(outputs, [&](const std::string&, const TensorLike& t) {
      if (is_floating(t.values().dtype())) add_activity_loss(t);
    });
  }
  return outputs;
}

void Layer::add_activity_loss(const TensorLike& output) const {
  const Tensor loss = (*activity_regularizer_)(output.values());
  const Shape& shape = output.spec().shape;
  if (shape.rank() == 0 || loss.is_symbolic()) return add_loss(loss);
  // Dividing by the number of rows makes the strength independent of the batch size. An empty batch
  // has the loss 0, so dividing by 1 is safe.
  const auto rows = static_cast<double>(std::max<int64_t>(shape[0], 1));
  add_loss(ops::scale(loss, ActivityLossScale::current() / rows));
}

std::vector<Tensor> Layer::compute_mask(const Tensors& inputs, const Tensors&) const {
  return masks_of(inputs);
}

Tensor Layer::operator()(const Tensor& input, const CallOptions& options) {
  return (*this)(Tensors(input), options).tensor();
}

void Layer::build(const Specs& inputs) { compute_output_spec(inputs); }

Specs Layer::compute_output_spec(const Specs& inputs) {
  const NoGraphScope no_graph;
  const NoGradient pause;
  return specs_of((*this)(symbolic_like(inputs)));
}

std::vector<Tensor> Layer::losses() const {
  std::vector<Tensor> out;
  if (!added_losses.all.empty()) {
    std::vector<uint64_t> numbers;
    add_numbers(numbers);
    for (const auto& [number, loss] : added_losses.all) {
      if (std::ranges::find(numbers, number) != numbers.end()) out.push_back(loss);
    }
  }
  std::vector<const Layer*> seen;
  add_regularization(seen, true, out);
  return out;
}

void Layer::add_loss(const Tensor& loss) const {
  if (loss.rank() != 0 || !is_floating(loss.dtype())) {
    throw ValueError(class_name_, " ", name_,
                     ".add_loss: the loss must be a floating-point scalar, received ", loss.dtype(),
                     loss.shape());
  }
  if (!loss.is_symbolic()) added_losses.all.emplace_back(number_, loss);
}

void Layer::add_numbers(std::vector<uint64_t>& out) const {
  out.push_back(number_);
  for (const auto& layer : sublayers_) layer->add_numbers(out);
}

void Layer::add_regularization(std::vector<const Layer*>& seen, bool parents_trainable,
                               std::vector<Tensor>& out) const {
  if (std::ranges::find(seen, this) != seen.end()) return;
  seen.push_back(this);
  const bool trains = parents_trainable && trainable_;
  for (const auto& [variable, regularizer] : regularized_) {
    if (trains && variable.trainable()) out.push_back((*regularizer)(variable.read()));
  }
  for (const auto& layer : sublayers_) layer->add_regularization(seen, trains, out);
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
  VariableOptions how = {.name = options.name,
                         .trainable = options.trainable,
                         .synchronization = options.synchronization,
                         .aggregation = options.aggregation};
  if (options.constraint) {
    how.constraint = [constraint = options.constraint](const Tensor& w) {
      return (*constraint)(w);
    };
  }
  const Variable variable = allocate_for(
      absl::StrCat(class_name_, " ", name_, ": weight '", options.name, "'"), options.shape,
      bytes_for(options.shape, static_cast<double>(size_of(options.dtype))),
      [&] { return add_weight(Variable(options.initializer(options.shape, options.dtype), how)); });
  if (options.regularizer) regularized_.emplace_back(variable, options.regularizer);
  return variable;
}

Variable Layer::add_weight(Variable variable) {
  variable.set_path(name_ + "/" + variable.name());
  weights_.push_back(variable);
  return variable;
}

void Layer::reset_weights(const DTypePolicy& policy) {
  weights_.clear();
  regularized_.clear();
  dtype_policy_ = policy;
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
  throw NotImplementedError(
      class_name_,
      ": get_config() is not implemented; override it so that files can describe the layer");
}

void TensorLayer::build_weights(const Specs& inputs) {
  TensorSpec spec = inputs.leaf();
  if (spec.layout == Layout::kSparse && is_floating(spec.dtype)) spec.layout = Layout::kDense;
  build_weights(spec);
}

Tensors TensorLayer::call(const Tensors& inputs, const CallContext& context) {
  const TensorLike& x = inputs.leaf();
  // Sparse encodings stand for their dense equivalent. Sparse ids do not: 0 is an id, too.
  const bool encodes = x.layout() == Layout::kSparse && is_floating(x.values().dtype());
  return call(encodes ? to_dense(x.sparse()) : x.tensor(), context);
}

}  // namespace keel

template std::vector<keel::StateEntry>::~vector();
template std::vector<keel::StateEntry>::vector(const std::vector<keel::StateEntry>& other);
