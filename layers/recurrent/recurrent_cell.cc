#include <keel/layers/recurrent/recurrent_cell.h>

#include <keel/layers/internal/cast.h>

namespace keel {
namespace {

Tensor ones(const Shape& shape, DType dtype) { return Tensor::full<float>(shape, 1).cast(dtype); }

// Keras ignores a rate of 1.
bool drops(double rate) { return rate > 0 && rate < 1; }

const TensorSpec& first_of(const Specs& inputs) {
  return inputs.is_leaf() ? inputs.leaf() : inputs[0].leaf();
}

// Computes x . kernel; each of several masks applies to its block of columns.
Tensor masked_product(const Tensor& x, const std::vector<Tensor>& masks, const Tensor& kernel,
                      const std::vector<Tensor>& parts) {
  if (masks.empty()) return ops::matmul(x, kernel);
  if (masks.size() == 1) return ops::matmul(x * masks[0], kernel);
  std::vector<Tensor> out;
  for (size_t i = 0; i < masks.size(); ++i) out.push_back(ops::matmul(x * masks[i], parts[i]));
  return ops::concat(out);
}

}  // namespace

int64_t RecurrentCell::units() const { return settings_.units; }

void RecurrentCell::check_settings() {
  const std::string caller = class_name() + " " + name();
  if (settings_.units <= 0) {
    throw ValueError(caller, ": units must be positive, received ", settings_.units);
  }
  const auto check_rate = [&](const char* option, double rate) {
    if (rate >= 0 && rate <= 1) return;
    throw ValueError(caller, ": ", option, " must be in [0, 1], received ", rate);
  };
  check_rate("dropout", settings_.dropout);
  check_rate("recurrent_dropout", settings_.recurrent_dropout);
  if (drops(settings_.dropout)) {
    dropout_ = track(layers::Dropout(
        {.rate = settings_.dropout, .seed = settings_.seed, .name = "dropout", .dtype = dtype()}));
  }
  if (drops(settings_.recurrent_dropout)) {
    // A different seed, so that the two dropouts do not drop the same positions.
    const auto seed = settings_.seed ? std::optional(*settings_.seed + 1) : settings_.seed;
    recurrent_dropout_ = track(layers::Dropout({.rate = settings_.recurrent_dropout,
                                                .seed = seed,
                                                .name = "recurrent_dropout",
                                                .dtype = dtype()}));
  }
}

std::vector<Shape> RecurrentCell::state_shapes(const Shape& input) const {
  if (input.rank() == 2 && input[1] != kUnknown) {
    return std::vector<Shape>(static_cast<size_t>(state_count()), Shape{input[0], units()});
  }
  throw ValueError(class_name(), " ", name(),
                   ": input must be [batch, features] with a known number of features, received ",
                   input);
}

void RecurrentCell::build_weights(const Specs& inputs) {
  const Shape shape = first_of(inputs).shape;
  state_shapes(shape);
  const int64_t columns = gates() * units();
  kernel_ = add_weight({.name = "kernel",
                        .shape = {shape[1], columns},
                        .initializer = settings_.kernel_initializer,
                        .regularizer = settings_.kernel_regularizer,
                        .constraint = settings_.kernel_constraint,
                        .dtype = dtype()});
  recurrent_kernel_ = add_weight({.name = "recurrent_kernel",
                                  .shape = {units(), columns},
                                  .initializer = settings_.recurrent_initializer,
                                  .regularizer = settings_.recurrent_regularizer,
                                  .constraint = settings_.recurrent_constraint,
                                  .dtype = dtype()});
  if (settings_.use_bias) {
    bias_ = add_weight({.name = "bias",
                        .shape = bias_shape(),
                        .initializer = settings_.bias_initializer,
                        .regularizer = settings_.bias_regularizer,
                        .constraint = settings_.bias_constraint,
                        .dtype = dtype()});
  }
  if (dropout_) (*dropout_)->build(TensorSpec{.shape = shape, .dtype = dtype()});
  if (recurrent_dropout_) {
    (*recurrent_dropout_)->build(TensorSpec{.shape = shape.with(1, units()), .dtype = dtype()});
  }
}

Tensor RecurrentCell::input_bias() const { return bias_ ? bias_.read() : Tensor(); }

RecurrentCell::Masks RecurrentCell::draw_masks(const Tensor& input_ones, const Tensor& state_ones,
                                               bool training) const {
  Masks out;
  if (!training) return out;
  const int count = settings_.recurrent_dropout != 0 ? gates() : 1;
  const auto draw = [&](const layers::Dropout& dropout, const Tensor& x) {
    std::vector<Tensor> masks;
    for (int i = 0; i < count; ++i) masks.push_back(dropout(x, {.training = true}));
    return masks;
  };
  if (dropout_) out.inputs = draw(*dropout_, input_ones);
  if (recurrent_dropout_) out.states = draw(*recurrent_dropout_, state_ones);
  return out;
}

Tensor RecurrentCell::project(const Tensor& x, const Masks& masks) const {
  const Tensor kernel = kernel_;
  const std::vector<Tensor> parts =
      masks.inputs.size() > 1 ? ops::split(kernel, gates()) : std::vector<Tensor>();
  const Tensor out = masked_product(x, masks.inputs, kernel, parts);
  const Tensor bias = input_bias();
  return bias ? out + bias : out;
}

RecurrentCell::RecurrentKernels RecurrentCell::recurrent_kernels(const Masks& masks) const {
  RecurrentKernels out{.all = recurrent_kernel_, .of_gates = {}};
  if (masks.states.size() > 1) out.of_gates = ops::split(out.all, gates());
  return out;
}

Tensor RecurrentCell::recur(const Tensor& state, const RecurrentKernels& kernels,
                            const Masks& masks) {
  return masked_product(state, masks.states, kernels.all, kernels.of_gates);
}

RNNCell::Run RecurrentCell::start(const Shape& input, bool training) {
  Masks masks;
  if (training) {
    masks = draw_masks(ones(input, dtype()), ones(state_shapes(input)[0], dtype()), true);
  }
  return {.project = [this, masks](const Tensor& x) { return project(x, masks); },
          .step = [step = make_step(masks)](const Tensor& projected,
                                            const States& states) -> StepResult {
            States next = step(projected, states);
            return {.output = next[0], .states = std::move(next)};
          }};
}

Tensors RecurrentCell::call(const Tensors& inputs, const CallContext& context) {
  const auto [x, states] = step_inputs(inputs, static_cast<size_t>(state_count()));
  const Masks masks = draw_masks(ops::ones_like(x), ops::ones_like(states[0]), context.training);
  const States next = make_step(masks)(project(x, masks), states);
  return step_result({.output = next[0], .states = next});
}

}  // namespace keel
