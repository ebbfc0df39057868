#include <keel/layers/recurrent/conv_lstm.h>

#include <absl/strings/str_cat.h>
#include <algorithm>

#include <keel/autodiff/spatial_ops.h>
#include <keel/layers/convolution/internal/windows.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {
namespace {

constexpr int kGates = 4;

// The convolution of the state, which keeps its size.
WindowOptions recurrent_placement(WindowOptions placement) {
  std::ranges::fill(placement.strides, 1);
  std::ranges::fill(placement.dilation_rate, 1);
  placement.padding = "same";
  return placement;
}

// Computes the convolution for all gates; a mask for each gate applies to its input.
Tensor convolve(const Tensor& x, const std::vector<Tensor>& masks, const Tensor& kernel,
                const Tensor& bias, const ops::SpatialWindows& windows) {
  if (masks.empty()) return ops::convolution(x, kernel, bias, windows);
  const std::vector<Tensor> parts = ops::split(kernel, kGates);
  std::vector<Tensor> out;
  for (int i = 0; i < kGates; ++i) {
    out.push_back(ops::convolution(x * masks[i], parts[i], Tensor(), windows));
  }
  const Tensor all = ops::concat(out);
  return bias ? all + bias : all;
}

// One step of a ConvLSTM. Convolutions run with channels last.
template <int N>
class ConvLSTMCell final : public RNNCell {
 public:
  ConvLSTMCell(ConvLSTMOptions<N> options, const std::string& owner)
      : RNNCell("ConvLSTMCell", options),
        options_(std::move(options)),
        caller_(owner),
        placement_(window_options(options_, owner)),
        recurrent_(recurrent_placement(placement_)) {
    if (options_.filters <= 0) {
      throw ValueError(owner, ": filters must be positive, received ", options_.filters);
    }
    check_window_options(placement_, false, owner);
    dropout_ = dropout_of("dropout", options_.dropout, options_.seed);
    // A different seed, so that the two dropouts do not drop the same positions.
    const auto seed = options_.seed ? std::optional(*options_.seed + 1) : options_.seed;
    recurrent_dropout_ = dropout_of("recurrent_dropout", options_.recurrent_dropout, seed);
  }

  std::vector<Shape> state_shapes(const Shape& input) const override {
    channels_of(input, placement_, caller_);
    const Shape shape = convolved_shape(input, options_.filters, placement_, caller_);
    return {shape, shape};
  }

  Run start(const Shape& input, bool training) override {
    if (kernel_) check_channels(input, kernel_.shape()[-2], placement_, caller_);
    const Shape x = last(input), h = last(state_shapes(input)[0]);
    const std::vector<Tensor> input_masks = masks(dropout_, x, training);
    const std::vector<Tensor> state_masks = masks(recurrent_dropout_, h, training);
    Run out;
    out.project = [this, input_masks, windows = windows_for(placement_, x, caller_),
                   kernel = kernel_.read(),
                   bias = options_.use_bias ? bias_.read() : Tensor()](const Tensor& steps) {
      return project(steps, input_masks, kernel, bias, windows);
    };
    out.step = [this, state_masks, windows = windows_for(recurrent_, h, caller_),
                kernel = recurrent_kernel_.read()](const Tensor& projected, const States& states) {
      const SpatialLayout& layout = placement_.layout;
      const Tensor before = layout.to_channels_last(states[0]);
      return gates(projected + convolve(before, state_masks, kernel, Tensor(), windows),
                   layout.to_channels_last(states[1]));
    };
    return out;
  }

 private:
  using SharedDropout = std::optional<layers::Dropout>;

  SharedDropout dropout_of(const char* option, double rate, std::optional<int64_t> seed) {
    if (!(rate >= 0 && rate <= 1)) {
      throw ValueError(caller_, ": ", option, " must be in [0, 1], received ", rate);
    }
    if (rate == 0 || rate == 1) return {};  // Keras ignores a rate of 1
    return track(
        layers::Dropout({.rate = rate, .seed = seed, .name = option, .dtype = options_.dtype}));
  }

  void build_weights(const Specs& inputs) override {
    const Shape input = inputs[0].leaf().shape;
    const int64_t columns = kGates * options_.filters;
    kernel_ = add_weight(
        {.name = "kernel",
         .shape = kernel_shape(placement_, channels_of(input, placement_, caller_), columns),
         .initializer = options_.kernel_initializer,
         .regularizer = options_.kernel_regularizer,
         .constraint = options_.kernel_constraint,
         .dtype = dtype()});
    recurrent_kernel_ = add_weight({.name = "recurrent_kernel",
                                    .shape = kernel_shape(recurrent_, options_.filters, columns),
                                    .initializer = options_.recurrent_initializer,
                                    .regularizer = options_.recurrent_regularizer,
                                    .constraint = options_.recurrent_constraint,
                                    .dtype = dtype()});
    if (options_.use_bias) build_bias(columns);
    for (const SharedDropout& dropout : {dropout_, recurrent_dropout_}) {
      if (dropout) (*dropout)->build(inputs[0]);
    }
  }

  void build_bias(int64_t columns) {
    bias_ = add_weight({.name = "bias",
                        .shape = {columns},
                        .initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint,
                        .dtype = dtype()});
    if (!options_.unit_forget_bias) return;
    bias_.update([&](Tensor& value) {
      visit_floating(value.dtype(), "ConvLSTM", [&]<class T>(const T&) {
        std::ranges::fill(value.mutable_data<T>().subspan(options_.filters, options_.filters),
                          T{1});
      });
    });
  }

  Tensors call(const Tensors& inputs, const CallContext& context) override {
    const auto [x, states] = step_inputs(inputs, 2);
    if (any_symbolic(inputs)) {
      const Tensor h = Tensor::symbolic({.shape = state_shapes(x.shape())[0], .dtype = dtype()});
      return step_result({.output = h, .states = {h, h}});
    }
    const Run run = start(x.shape(), context.training);
    return step_result(run.step(run.project(x), states));
  }

  // Returns a shape with channels last.
  Shape last(const Shape& shape) const {
    if (placement_.layout.channels_last) return shape;
    return shape.without(1).inserted(N + 1, shape[1]);
  }

  // Draws one mask for each gate, or none outside of training.
  std::vector<Tensor> masks(const SharedDropout& dropout, const Shape& shape, bool training) const {
    std::vector<Tensor> out;
    if (!training || !dropout) return out;
    const Tensor ones = Tensor::full<float>(shape, 1).cast(dtype());
    for (int i = 0; i < kGates; ++i) out.push_back((*dropout)(ones, {.training = true}));
    return out;
  }

  // Computes x * W + b with channels last for [batch, ...] or, in one convolution, for [steps,
  // batch, ...].
  Tensor project(const Tensor& x, const std::vector<Tensor>& input_masks, const Tensor& kernel,
                 const Tensor& bias, const ops::SpatialWindows& windows) const {
    const bool many = x.rank() == N + 3;
    const Shape rest = x.shape().slice(many ? 2 : 1, x.rank());
    const Tensor rows = placement_.layout.to_channels_last(
        many ? ops::reshape(x, Shape{x.dim(0) * x.dim(1)} + rest) : x);
    std::vector<Tensor> repeated = input_masks;
    if (many) {
      for (Tensor& mask : repeated) {
        const Shape shape = mask.shape();
        mask = ops::reshape(ops::broadcast_to(mask, Shape{x.dim(0)} + shape), rows.shape());
      }
    }
    const Tensor y = convolve(rows, repeated, kernel, bias, windows);
    if (!many) return y;
    return ops::reshape(y, Shape{x.dim(0), x.dim(1)} + y.shape().slice(1, y.rank()));
  }

  // Computes the states from the sums of all gates and the cell state, with channels last.
  StepResult gates(const Tensor& sums, const Tensor& carry_before) const {
    const std::vector<Tensor> parts = ops::split(sums, kGates);
    const Tensor in = options_.recurrent_activation(parts[0]);
    const Tensor forget = options_.recurrent_activation(parts[1]);
    const Tensor carry = forget * carry_before + in * options_.activation(parts[2]);
    const Tensor output = options_.recurrent_activation(parts[3]) * options_.activation(carry);
    const SpatialLayout& layout = placement_.layout;
    const Tensor h = layout.from_channels_last(output);
    return {.output = h, .states = {h, layout.from_channels_last(carry)}};
  }

  const ConvLSTMOptions<N> options_;
  const std::string caller_;
  const WindowOptions placement_, recurrent_;
  SharedDropout dropout_, recurrent_dropout_;
  Variable kernel_, recurrent_kernel_, bias_;
};

}  // namespace

namespace {

// Creates the cell of a layer. Its name is that of Keras's cell.
template <int N>
LayerHandle<RNNCell> cell_of(ConvLSTMOptions<N> options, const char* class_name) {
  const std::string owner = absl::StrCat(class_name, options.name.empty() ? "" : " ", options.name);
  options.name = "conv_lstm_cell";
  options.trainable = true;
  return make_layer<ConvLSTMCell<N>>(std::move(options), owner);
}

}  // namespace

template <ClassName kName, int N>
ConvLSTMLayer<kName, N>::ConvLSTMLayer(Options options)
    : RecurrentLayer(kClassName, options, cell_of<N>(options, kClassName)),
      options_(std::move(options)) {}

template class ConvLSTMLayer<"ConvLSTM1D", 1>;
template class ConvLSTMLayer<"ConvLSTM2D", 2>;
template class ConvLSTMLayer<"ConvLSTM3D", 3>;

KEEL_REGISTER(Layer, ConvLSTM1DLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "implementation=*, time_major=false")
KEEL_REGISTER(Layer, ConvLSTM2DLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "implementation=*, time_major=false")
KEEL_REGISTER(Layer, ConvLSTM3DLayer, .package = "keras",
              .call = "sequences, initial_state, mask, training",
              .ignored_keys = "implementation=*, time_major=false")

}  // namespace keel
