#include <algorithm>

#include <keel/autodiff/tape.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/internal/variable_paths.h>
#include <keel/layers/recurrent/internal/cell_settings.h>

namespace keel {
namespace {

Tensor ones(const Shape& shape, DType dtype) { return Tensor::full<float>(shape, 1).cast(dtype); }

// Splits [steps, batch, ...] into the [batch, ...] of each step.
std::vector<Tensor> steps_of(const Tensor& time_major) {
  std::vector<Tensor> out = ops::split(time_major, time_major.dim(0), 0);
  for (Tensor& step : out) step = ops::squeeze(step, 0);
  return out;
}

// Splits the mask into [batch, 1] for each step.
std::vector<Tensor> mask_steps(const Tensor& mask) { return ops::split(mask, mask.dim(1), 1); }

}  // namespace

struct RecurrentLayer::Result {
  std::vector<Tensor> outputs;  // of all steps, or of the last step only
  RecurrentCell::States states;
};

Tensors recurrent_inputs(const Tensors& sequences, const std::vector<Tensor>& initial_state) {
  if (initial_state.empty()) return sequences;
  Tensors::Items items = {sequences};
  items.insert(items.end(), initial_state.begin(), initial_state.end());
  return Tensors::list(std::move(items));
}

Tensors RecurrentLayer::operator()(const Tensors& sequences, const CallOptions& options) {
  return Layer::operator()(recurrent_inputs(sequences, options.initial_state),
                           {.training = options.training});
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
  if (shape.rank() == 3 && shape[2] != kUnknown && shape[1] != 0) return;
  throw ValueError(
      caller(), ": input must be [batch, steps, features] with a known number of features and at ",
      "least one step, received ", shape);
}

void RecurrentLayer::build_weights(const Specs& inputs) {
  const Shape shape = (inputs.is_leaf() ? inputs.leaf() : inputs[0].leaf()).shape;
  check_sequences(shape);
  if (loop_.stateful && shape[0] == kUnknown) {
    throw ValueError(caller(), ": stateful requires a known batch size, received ", shape);
  }
  const TensorSpec state = {.shape = {shape[0], cell_->units()}, .dtype = dtype()};
  Specs::Items cell_inputs = {TensorSpec{.shape = {shape[0], shape[2]}, .dtype = dtype()}};
  cell_inputs.insert(cell_inputs.end(), cell_->state_count(), state);
  cell_->build(Specs::list(std::move(cell_inputs)));
  prepend_to_paths(name(), *cell_);
  if (!loop_.stateful || !states_.empty()) return;
  for (int i = 0; i < cell_->state_count(); ++i) {
    states_.push_back(
        add_state(Variable(Tensor::zeros(state.shape, state.dtype),
                           {.name = "rnn_state" + (i == 0 ? "" : "_" + std::to_string(i)),
                            .trainable = false,
                            .synchronization = VariableSynchronization::kOnRead,
                            .aggregation = VariableAggregation::kOnlyFirstReplica})));
  }
}

// Returns the given states, the stored states, or zeros.
RecurrentCell::States RecurrentLayer::initial_states(const Tensors& inputs, int64_t batch) const {
  const Shape shape = {batch, cell_->units()};
  const auto count = static_cast<size_t>(cell_->state_count());
  RecurrentCell::States out;
  if (!inputs.is_leaf() && inputs.items().size() > 1) {
    if (inputs.items().size() != count + 1) {
      throw ValueError(caller(), ": initial_state must have ", count, " tensors, received ",
                       inputs.items().size() - 1);
    }
    for (size_t i = 1; i <= count; ++i) {
      out.push_back(as_dtype(inputs.items()[i].tensor(), dtype()));
    }
  } else {
    const bool kept = loop_.stateful && batch != kUnknown;
    for (size_t i = 0; i < count; ++i) {
      if (batch == kUnknown) {
        out.push_back(Tensor::symbolic({.shape = shape, .dtype = dtype()}));
      } else {
        out.push_back(kept ? states_[i].read() : Tensor::zeros(shape, dtype()));
      }
    }
  }
  for (const Tensor& state : out) {
    if (compatible(state.shape(), shape)) continue;
    throw ValueError(caller(), loop_.stateful ? ": stateful" : ": initial_state",
                     " requires states of shape ", shape, ", received ", state.shape());
  }
  return out;
}

// Projects the inputs of all steps in one product, then runs the steps one after the other.
RecurrentLayer::Result RecurrentLayer::run(const Tensor& x, const Tensor& mask,
                                           RecurrentCell::States states, bool training) const {
  const int64_t batch = x.dim(0), steps = x.dim(1);
  RecurrentCell::Masks dropped;
  if (training) {
    dropped = cell_->draw_masks(ones({batch, x.dim(2)}, dtype()),
                                ones({batch, cell_->units()}, dtype()), true);
  }
  const std::vector<Tensor> projected =
      steps_of(cell_->project(ops::transpose(x, {1, 0, 2}), dropped));
  const std::vector<Tensor> counts = mask ? mask_steps(mask) : std::vector<Tensor>();
  const RecurrentCell::Step step = cell_->make_step(dropped);
  const Tensor zeros = Tensor::zeros({batch, cell_->units()}, dtype());

  Result out;
  Tensor previous = zeros;
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t t = loop_.go_backwards ? steps - 1 - i : i;
    RecurrentCell::States next = step(projected[t], states);
    Tensor output = next[0];
    if (mask) {
      output = ops::where(counts[t], output, loop_.zero_output_for_mask ? zeros : previous);
      for (size_t k = 0; k < next.size(); ++k) {
        next[k] = ops::where(counts[t], next[k], states[k]);
      }
    }
    states = std::move(next);
    previous = output;
    if (loop_.return_sequences || i + 1 == steps) out.outputs.push_back(output);
  }
  out.states = std::move(states);
  return out;
}

Tensors RecurrentLayer::outputs_of(const Tensor& output,
                                   const RecurrentCell::States& states) const {
  if (!loop_.return_state) return output;
  Tensors::Items items = {output};
  items.insert(items.end(), states.begin(), states.end());
  return Tensors::tuple(std::move(items));
}

Tensors RecurrentLayer::call(const Tensors& inputs, const CallContext& context) {
  const Tensor given = inputs.is_leaf() ? inputs.tensor() : inputs[0].tensor();
  check_sequences(given.shape());
  const Tensor x = as_dtype(given, dtype());
  const int64_t batch = x.dim(0), units = cell_->units();
  RecurrentCell::States states = initial_states(inputs, batch);
  if (any_symbolic(inputs)) {
    const Shape shape =
        loop_.return_sequences ? Shape{batch, x.dim(1), units} : Shape{batch, units};
    for (Tensor& state : states) {
      state = Tensor::symbolic({.shape = {batch, units}, .dtype = dtype()});
    }
    return outputs_of(Tensor::symbolic({.shape = shape, .dtype = dtype()}), states);
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
