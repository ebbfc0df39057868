#include <algorithm>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/recurrent/internal/cell_settings.h>

namespace keel {
namespace {

// Returns the shape [batch, ...] of one step of sequences [batch, steps, ...].
Shape step_of(const Shape& sequences) { return sequences.without(1); }

// Swaps the axes of the batch and the steps.
Tensor with_swapped_axes(const Tensor& x) {
  std::vector<int> order = {1, 0};
  for (int axis = 2; axis < x.rank(); ++axis) order.push_back(axis);
  return ops::transpose(x, order);
}

// Splits [steps, batch, ...] into the [batch, ...] of each step.
std::vector<Tensor> steps_of(const Tensor& time_major) {
  std::vector<Tensor> out = ops::split(time_major, time_major.dim(0), 0);
  for (Tensor& step : out) step = ops::squeeze(step, 0);
  return out;
}

// Splits the mask into [batch, 1] for each step.
std::vector<Tensor> mask_steps(const Tensor& mask) { return ops::split(mask, mask.dim(1), 1); }

// Returns a where the mask [batch, 1] is true, and b elsewhere.
Tensor chosen(const Tensor& mask, const Tensor& a, const Tensor& b) {
  if (a.rank() == 2) return ops::where(mask, a, b);
  Shape shape = {mask.dim(0)};
  for (int axis = 1; axis < a.rank(); ++axis) shape = shape.inserted(axis, 1);
  return ops::where(ops::reshape(mask, shape), a, b);
}

}  // namespace

struct RecurrentLayer::Result {
  std::vector<Tensor> outputs;  // of all steps, or of the last step only
  RNNCell::States states;
};

Tensors RecurrentLayer::operator()(const Tensors& sequences, const CallOptions& options) {
  Tensors inputs = sequences;
  if (!options.initial_state.empty()) {
    if (!built()) build(specs_of(sequences));  // a built cell knows the structure of its states
    Tensors::Items items = cell_->packed(options.initial_state);
    items.insert(items.begin(), sequences);
    inputs = Tensors::list(std::move(items));
  }
  return Layer::operator()(inputs, {.training = options.training});
}

Tensor RecurrentLayer::operator()(const Tensor& sequences, const CallOptions& options) {
  return (*this)(Tensors(sequences), options).tensor();
}

Tensors RecurrentLayer::replay(const Tensors& inputs, const keel::CallOptions& options) {
  return Layer::operator()(inputs, options);
}

Config RecurrentLayer::config_of(Config options) const {
  options.set("zero_output_for_mask", loop_.zero_output_for_mask);
  return options;
}

void RecurrentLayer::reset_states() {
  for (const Variable& state : states_) state.assign(Tensor::zeros(state.shape(), state.dtype()));
}

std::vector<Tensor> RecurrentLayer::compute_mask(const Tensors& inputs, const Tensors&) const {
  if (!loop_.return_sequences) return {};
  const TensorLike first = flatten(inputs).at(0);
  return {first.tensor().mask()};
}

void RecurrentLayer::check_sequences(const Shape& shape) const {
  if (shape.rank() >= 3 && shape[1] != 0) return;
  throw ValueError(caller(),
                   ": input must be [batch, steps, features ...] with at least one step, received ",
                   shape);
}

void RecurrentLayer::build_weights(const Specs& inputs) {
  const Shape shape = (inputs.is_leaf() ? inputs.leaf() : inputs[0].leaf()).shape;
  check_sequences(shape);
  if (loop_.stateful && shape[0] == kUnknown) {
    throw ValueError(caller(), ": stateful requires a known batch size, received ", shape);
  }
  const TensorSpec step = {.shape = step_of(shape), .dtype = cell_->dtype()};
  Specs::Items cell_inputs = {step};
  for (const Shape& state : cell_->state_shapes(step.shape)) {
    cell_inputs.push_back(TensorSpec{.shape = state, .dtype = cell_->dtype()});
  }
  cell_->build(Specs::list(std::move(cell_inputs)));
  prepend_to_paths(name(), *cell_);
  if (!loop_.stateful || !states_.empty()) return;
  const RNNCell::States initial = cell_->initial_states(step.shape);
  for (size_t i = 0; i < initial.size(); ++i) {
    states_.push_back(add_state(
        Variable(initial[i], {.name = "rnn_state" + (i == 0 ? "" : "_" + std::to_string(i)),
                              .trainable = false,
                              .synchronization = VariableSynchronization::kOnRead,
                              .aggregation = VariableAggregation::kOnlyFirstReplica})));
  }
}

// Returns the states of a call's inputs, of which there must be `count`, or none.
RNNCell::States RecurrentLayer::given_states(const Tensors& inputs, size_t count) const {
  RNNCell::States out;
  if (inputs.is_leaf()) return out;
  const std::vector<TensorLike> all = flatten(inputs);
  if (all.size() == 1) return out;
  if (all.size() != count + 1) {
    throw ValueError(caller(), ": initial_state must have ", count, " tensors, received ",
                     all.size() - 1);
  }
  for (size_t i = 1; i <= count; ++i) out.push_back(as_dtype(all[i].tensor(), cell_->dtype()));
  return out;
}

// Returns the given states, the stored states, or those with which the cell begins.
RNNCell::States RecurrentLayer::initial_states(const Tensors& inputs, const Shape& step) const {
  const std::vector<Shape> shapes = cell_->state_shapes(step);
  RNNCell::States out = given_states(inputs, shapes.size());
  if (out.empty() && loop_.stateful && step[0] != kUnknown) {
    for (const Variable& state : states_) out.push_back(state.read());
  } else if (out.empty() && any_symbolic(inputs)) {
    for (const Shape& shape : shapes) {
      out.push_back(Tensor::symbolic({.shape = shape, .dtype = cell_->dtype()}));
    }
  } else if (out.empty()) {
    out = cell_->initial_states(step);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (compatible(out[i].shape(), shapes[i])) continue;
    throw ValueError(caller(), loop_.stateful ? ": stateful" : ": initial_state",
                     " requires states of shape ", shapes[i], ", received ", out[i].shape());
  }
  return out;
}

// Projects the inputs of all steps at once, then runs the steps one after the other.
RecurrentLayer::Result RecurrentLayer::run(const Tensor& x, const Tensor& mask,
                                           RNNCell::States states, bool training) const {
  const Shape step_shape = step_of(x.shape());
  const AutocastScope products(product_operands(cell_->dtype_policy()));
  const RNNCell::Run cell = cell_->start(step_shape, training);
  const Tensor inputs = with_swapped_axes(x);
  const std::vector<Tensor> projected = steps_of(cell.project ? cell.project(inputs) : inputs);
  const std::vector<Tensor> counts = mask ? mask_steps(mask) : std::vector<Tensor>();
  Tensor zeros;
  if (mask) zeros = Tensor::zeros(cell_->output_shape(step_shape), cell_->dtype());

  Result out;
  Tensor previous = zeros;
  const int64_t steps = x.dim(1);
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = loop_.go_backwards ? steps - 1 - i : i;
    RNNCell::StepResult next = cell.step(projected[t], states);
    if (mask) {
      next.output = chosen(counts[t], next.output, loop_.zero_output_for_mask ? zeros : previous);
      for (size_t k = 0; k < states.size(); ++k) {
        next.states[k] = chosen(counts[t], next.states[k], states[k]);
      }
    }
    states = std::move(next.states);
    previous = next.output;
    if (loop_.return_sequences || i + 1 == steps) out.outputs.push_back(next.output);
  }
  out.states = std::move(states);
  return out;
}

// Returns the output and, if requested, the states in the dtype of the layer.
Tensors RecurrentLayer::outputs_of(const Tensor& output, const RNNCell::States& states) const {
  if (!loop_.return_state) return as_dtype(output, dtype());
  RNNCell::States last = states;
  for (Tensor& state : last) state = as_dtype(state, dtype());
  Tensors::Items items = {as_dtype(output, dtype())};
  for (Tensors& state : cell_->packed(last)) items.push_back(std::move(state));
  return Tensors::tuple(std::move(items));
}

Tensors RecurrentLayer::call(const Tensors& inputs, const CallContext& context) {
  const Tensor given = inputs.is_leaf() ? inputs.tensor() : inputs[0].tensor();
  check_sequences(given.shape());
  const Tensor x = as_dtype(given, cell_->dtype());
  const Shape step = step_of(x.shape());
  RNNCell::States states = initial_states(inputs, step);
  if (any_symbolic(inputs)) {
    Shape shape = cell_->output_shape(step);
    if (loop_.return_sequences) shape = shape.inserted(1, x.dim(1));
    const std::vector<Shape> shapes = cell_->state_shapes(step);
    for (size_t i = 0; i < states.size(); ++i) {
      states[i] = Tensor::symbolic({.shape = shapes[i], .dtype = cell_->dtype()});
    }
    return outputs_of(Tensor::symbolic({.shape = shape, .dtype = cell_->dtype()}), states);
  }
  Result result = run(x, given.mask(), std::move(states), context.training);
  if (loop_.stateful) {
    for (size_t i = 0; i < states_.size(); ++i) {
      // Store the values only, so that the next batch does not differentiate through this one.
      states_[i].assign(result.states[i].aliased());
    }
  }
  const Tensor output =
      loop_.return_sequences ? ops::stack(result.outputs, 1) : result.outputs.back();
  return outputs_of(output, result.states);
}

}  // namespace keel
