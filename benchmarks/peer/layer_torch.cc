#include <functional>
#include <string>
#include <torch/torch.h>

#include "benchmarks/peer/layer_peer.h"

namespace keel::bench {
namespace {

namespace nn = torch::nn;

at::Tensor tensor_of(const WeightValues& weight) {
  return torch::tensor(weight.values).reshape(weight.shape);
}

// [kernel axes ..., in, out] -> [out, in, kernel axes ...]
at::Tensor convolution_kernel(const WeightValues& weight) {
  return tensor_of(weight).permute({3, 2, 0, 1});
}

void assign(at::Tensor& parameter, const at::Tensor& values) {
  const torch::NoGradGuard no_gradients;
  parameter.copy_(values);
}

std::vector<float> values_of(const at::Tensor& x) {
  const at::Tensor flat = x.detach().contiguous();
  return {flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel()};
}

at::MemoryFormat torch_format(MemoryFormat format) {
  return format == MemoryFormat::kChannelsLast ? at::MemoryFormat::ChannelsLast
                                               : at::MemoryFormat::Contiguous;
}

// A layer as a function of its input, with the parameters that get gradients.
class TorchLayer final : public LayerPeer {
 public:
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  TorchLayer(at::Tensor input, std::vector<at::Tensor> parameters, Forward forward,
             std::vector<int64_t> to_keras)
      : input_(std::move(input)),
        parameters_(std::move(parameters)),
        forward_(std::move(forward)),
        to_keras_(std::move(to_keras)) {
    input_.requires_grad_();
  }

  void step() override {
    input_.mutable_grad().reset();
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    output_ = forward_(input_);
    output_.sum().backward();
  }

  std::vector<float> output() override { return values_of(output_.permute(to_keras_)); }

 private:
  at::Tensor input_;
  std::vector<at::Tensor> parameters_;
  const Forward forward_;
  const std::vector<int64_t> to_keras_;  // the permutation of the output's axes
  at::Tensor output_;
};

const std::vector<int64_t> kImages = {0, 2, 3, 1}, kSteps = {0, 1, 2}, kStepsFirst = {1, 0, 2},
                           kVolumes = {0, 2, 3, 4, 1};

std::unique_ptr<LayerPeer> make_image_layer(const LayerWork& work, MemoryFormat format,
                                            const at::Tensor& input,
                                            const std::vector<WeightValues>& weights) {
  at::Tensor x = input.permute({0, 3, 1, 2}).contiguous(torch_format(format));
  const int64_t channels = work.input[3], window = work.window;
  if (work.layer == "MaxPooling2D") {
    return std::make_unique<TorchLayer>(
        x, std::vector<at::Tensor>{},
        [window](const at::Tensor& in) { return at::max_pool2d(in, {window, window}); }, kImages);
  }
  if (work.layer == "AveragePooling2D") {
    return std::make_unique<TorchLayer>(
        x, std::vector<at::Tensor>{},
        [window](const at::Tensor& in) { return at::avg_pool2d(in, {window, window}); }, kImages);
  }
  const bool depthwise = work.layer == "DepthwiseConv2D";
  nn::Conv2d layer(nn::Conv2dOptions(channels, depthwise ? channels : work.units, window)
                       .padding(window / 2)
                       .groups(depthwise ? channels : 1));
  const at::Tensor kernel =
      depthwise ? tensor_of(weights[0]).permute({2, 3, 0, 1}) : convolution_kernel(weights[0]);
  assign(layer->weight, kernel);
  assign(layer->bias, tensor_of(weights[1]));
  layer->weight.set_data(layer->weight.contiguous(torch_format(format)));
  return std::make_unique<TorchLayer>(
      x, layer->parameters(), [layer](const at::Tensor& in) mutable { return layer(in); }, kImages);
}

// A convolution of the stride 2 that doubles the size, with windows of 4.
std::unique_ptr<LayerPeer> make_transposed_layer(const LayerWork& work, MemoryFormat format,
                                                 const at::Tensor& input,
                                                 const std::vector<WeightValues>& weights) {
  const at::MemoryFormat memory = torch_format(format);
  nn::ConvTranspose2d layer(
      nn::ConvTranspose2dOptions(work.input[3], work.units, work.window).stride(2).padding(1));
  // [kernel axes ..., out, in] -> [in, out, kernel axes ...]
  assign(layer->weight, tensor_of(weights[0]).permute({3, 2, 0, 1}));
  assign(layer->bias, tensor_of(weights[1]));
  layer->weight.set_data(layer->weight.contiguous(memory));
  return std::make_unique<TorchLayer>(
      input.permute({0, 3, 1, 2}).contiguous(memory), layer->parameters(),
      [layer](const at::Tensor& in) mutable { return layer(in); }, kImages);
}

std::unique_ptr<LayerPeer> make_separable_layer(const LayerWork& work, MemoryFormat format,
                                                const at::Tensor& input,
                                                const std::vector<WeightValues>& weights) {
  const at::MemoryFormat memory = torch_format(format);
  const int64_t channels = work.input[3], window = work.window;
  nn::Conv2d depthwise(nn::Conv2dOptions(channels, channels, window)
                           .padding(window / 2)
                           .groups(channels)
                           .bias(false));
  nn::Conv2d pointwise(nn::Conv2dOptions(channels, work.units, 1));
  assign(depthwise->weight, tensor_of(weights[0]).permute({2, 3, 0, 1}));
  assign(pointwise->weight, convolution_kernel(weights[1]));
  assign(pointwise->bias, tensor_of(weights[2]));
  std::vector<at::Tensor> parameters;
  for (nn::Conv2d* layer : {&depthwise, &pointwise}) {
    (*layer)->weight.set_data((*layer)->weight.contiguous(memory));
    for (const at::Tensor& parameter : (*layer)->parameters()) parameters.push_back(parameter);
  }
  return std::make_unique<TorchLayer>(
      input.permute({0, 3, 1, 2}).contiguous(memory), parameters,
      [depthwise, pointwise](const at::Tensor& in) mutable { return pointwise(depthwise(in)); },
      kImages);
}

std::unique_ptr<LayerPeer> make_volume_layer(const LayerWork& work, MemoryFormat format,
                                             const at::Tensor& input,
                                             const std::vector<WeightValues>& weights) {
  const at::MemoryFormat memory = format == MemoryFormat::kChannelsLast
                                      ? at::MemoryFormat::ChannelsLast3d
                                      : at::MemoryFormat::Contiguous;
  nn::Conv3d layer(
      nn::Conv3dOptions(work.input[4], work.units, work.window).padding(work.window / 2));
  assign(layer->weight, tensor_of(weights[0]).permute({4, 3, 0, 1, 2}));
  assign(layer->bias, tensor_of(weights[1]));
  layer->weight.set_data(layer->weight.contiguous(memory));
  return std::make_unique<TorchLayer>(
      input.permute({0, 4, 1, 2, 3}).contiguous(memory), layer->parameters(),
      [layer](const at::Tensor& in) mutable { return layer(in); }, kVolumes);
}

std::unique_ptr<LayerPeer> make_layer_normalization(const LayerWork& work, const at::Tensor& input,
                                                    const std::vector<WeightValues>& weights) {
  nn::LayerNorm layer(nn::LayerNormOptions({work.input.back()}).eps(1e-3));
  assign(layer->weight, tensor_of(weights[0]));
  assign(layer->bias, tensor_of(weights[1]));
  return std::make_unique<TorchLayer>(
      input.contiguous(), layer->parameters(),
      [layer](const at::Tensor& in) mutable { return layer(in); }, kSteps);
}

std::unique_ptr<LayerPeer> make_group_normalization(const LayerWork& work, MemoryFormat format,
                                                    const at::Tensor& input,
                                                    const std::vector<WeightValues>& weights) {
  nn::GroupNorm layer(nn::GroupNormOptions(work.units, work.input[3]).eps(1e-3));
  assign(layer->weight, tensor_of(weights[0]));
  assign(layer->bias, tensor_of(weights[1]));
  return std::make_unique<TorchLayer>(
      input.permute({0, 3, 1, 2}).contiguous(torch_format(format)), layer->parameters(),
      [layer](const at::Tensor& in) mutable { return layer(in); }, kImages);
}

std::unique_ptr<LayerPeer> make_batch_normalization(const LayerWork& work, MemoryFormat format,
                                                    const at::Tensor& input,
                                                    const std::vector<WeightValues>& weights) {
  nn::BatchNorm2d layer(nn::BatchNorm2dOptions(work.input[3]).eps(1e-3).momentum(0.01));
  assign(layer->weight, tensor_of(weights[0]));
  assign(layer->bias, tensor_of(weights[1]));
  return std::make_unique<TorchLayer>(
      input.permute({0, 3, 1, 2}).contiguous(torch_format(format)), layer->parameters(),
      [layer](const at::Tensor& in) mutable { return layer(in); }, kImages);
}

// LSTM and GRU: Keras keeps kernels as [in, gates] and one or two rows of biases. Each layer has
// three weights.
template <class Module, class ModuleOptions>
std::unique_ptr<LayerPeer> make_recurrent_layer(const LayerWork& work, const at::Tensor& input,
                                                const std::vector<WeightValues>& weights,
                                                bool reset_first) {
  const auto depth = static_cast<int64_t>(weights.size() / 3);
  Module layer(ModuleOptions(work.input[2], work.units).num_layers(depth).batch_first(true));
  // Keras's GRU has the update gate first, libtorch's the reset gate.
  const auto reorder = [&](const at::Tensor& gates) {
    if (!reset_first) return gates;
    const auto parts = gates.chunk(3, -1);
    return torch::cat({parts[1], parts[0], parts[2]}, -1);
  };
  auto parameters = layer->named_parameters();
  for (int64_t i = 0; i < depth; ++i) {
    const std::string level = "_l" + std::to_string(i);
    const WeightValues* const own = &weights[static_cast<size_t>(3 * i)];
    assign(parameters["weight_ih" + level], reorder(tensor_of(own[0])).t());
    assign(parameters["weight_hh" + level], reorder(tensor_of(own[1])).t());
    const at::Tensor bias = reorder(tensor_of(own[2]));
    assign(parameters["bias_ih" + level], bias.dim() == 2 ? bias[0] : bias);
    assign(parameters["bias_hh" + level], bias.dim() == 2 ? bias[1] : torch::zeros_like(bias));
  }
  return std::make_unique<TorchLayer>(
      input.contiguous(), layer->parameters(),
      [layer](const at::Tensor& in) mutable { return std::get<0>(layer(in)); }, kSteps);
}

std::unique_ptr<LayerPeer> make_attention(const LayerWork& work, const at::Tensor& input,
                                          const std::vector<WeightValues>& weights) {
  const int64_t dim = work.input[2];
  nn::MultiheadAttention layer(nn::MultiheadAttentionOptions(dim, work.units));
  const auto kernel = [&](int i) { return tensor_of(weights[i]).reshape({dim, dim}).t(); };
  const auto bias = [&](int i) { return tensor_of(weights[i]).reshape({dim}); };
  assign(layer->in_proj_weight, torch::cat({kernel(0), kernel(2), kernel(4)}));
  assign(layer->in_proj_bias, torch::cat({bias(1), bias(3), bias(5)}));
  assign(layer->out_proj->weight, kernel(6));
  assign(layer->out_proj->bias, bias(7));
  return std::make_unique<TorchLayer>(
      input.transpose(0, 1).contiguous(), layer->parameters(),
      [layer](const at::Tensor& in) mutable {
        return std::get<0>(layer(in, in, in, at::Tensor(), /*need_weights=*/false));
      },
      kStepsFirst);
}

// ResNet: three stages of one block, for images with an odd size, whose padding is symmetric.
class TorchResNet final : public LayerPeer {
 public:
  TorchResNet(const LayerWork& work, MemoryFormat format, const at::Tensor& input,
              const std::vector<WeightValues>& weights, const std::vector<int64_t>& labels)
      : format_(torch_format(format)),
        weights_(weights),
        input_(input.permute({0, 3, 1, 2}).contiguous(format_)),
        labels_(torch::tensor(labels)) {
    add(work.input[3], 16, 3, 1);
    for (const int64_t filters : {16, 32, 64}) {
      const int64_t in = filters == 16 ? 16 : filters / 2, strides = filters == 16 ? 1 : 2;
      add(in, filters, 3, strides);
      add(filters, filters, 3, 1);
      if (strides > 1) add(in, filters, 1, strides);
    }
    dense_ = nn::Linear(64, work.units);
    assign(dense_->weight, tensor_of(next()).t());
    assign(dense_->bias, tensor_of(next()));
    std::vector<at::Tensor> parameters = dense_->parameters();
    for (const Unit& unit : units_) {
      for (const at::Tensor& parameter : unit.convolution->parameters())
        parameters.push_back(parameter);
      for (const at::Tensor& parameter : unit.normalization->parameters())
        parameters.push_back(parameter);
    }
    optimizer_ = std::make_unique<torch::optim::SGD>(parameters,
                                                     torch::optim::SGDOptions(0.01).momentum(0.9));
  }

  void step() override {
    optimizer_->zero_grad();
    size_t unit = 0;
    at::Tensor x = apply(unit++, input_).relu();
    for (int stage = 0; stage < 3; ++stage) {
      const at::Tensor inner = apply(unit, x).relu();
      const at::Tensor main = apply(unit + 1, inner);
      const at::Tensor shortcut = stage == 0 ? x : apply(unit + 2, x);
      unit += stage == 0 ? 2 : 3;
      x = (main + shortcut).relu();
    }
    const at::Tensor logits = dense_(x.mean({2, 3}));
    loss_ = torch::cross_entropy_loss(logits, labels_);
    loss_.backward();
    optimizer_->step();
  }

  std::vector<float> output() override { return {loss_.item<float>()}; }

 private:
  struct Unit {
    nn::Conv2d convolution{nullptr};
    nn::BatchNorm2d normalization{nullptr};
  };

  const WeightValues& next() { return weights_[next_++]; }

  void add(int64_t in, int64_t out, int64_t window, int64_t strides) {
    Unit unit;
    unit.convolution = nn::Conv2d(
        nn::Conv2dOptions(in, out, window).stride(strides).padding(window / 2).bias(false));
    assign(unit.convolution->weight, convolution_kernel(next()));
    unit.convolution->weight.set_data(unit.convolution->weight.contiguous(format_));
    unit.normalization = nn::BatchNorm2d(nn::BatchNorm2dOptions(out));
    assign(unit.normalization->weight, tensor_of(next()));
    assign(unit.normalization->bias, tensor_of(next()));
    units_.push_back(unit);
  }

  at::Tensor apply(size_t unit, const at::Tensor& x) {
    return units_[unit].normalization(units_[unit].convolution(x));
  }

  const at::MemoryFormat format_;
  const std::vector<WeightValues> weights_;
  size_t next_ = 0;
  const at::Tensor input_, labels_;
  std::vector<Unit> units_;
  nn::Linear dense_{nullptr};
  std::unique_ptr<torch::optim::SGD> optimizer_;
  at::Tensor loss_;
};

}  // namespace

std::unique_ptr<LayerPeer> make_layer_peer(const LayerWork& work, MemoryFormat format,
                                           const std::vector<float>& input,
                                           const std::vector<WeightValues>& weights,
                                           const std::vector<int64_t>& labels) {
  const at::Tensor x = torch::tensor(input).reshape(work.input);
  if (work.layer == "ResNet")
    return std::make_unique<TorchResNet>(work, format, x, weights, labels);
  if (work.layer == "Conv2DTranspose") return make_transposed_layer(work, format, x, weights);
  if (work.layer == "SeparableConv2D") return make_separable_layer(work, format, x, weights);
  if (work.layer == "Conv3D") return make_volume_layer(work, format, x, weights);
  if (work.layer == "LayerNormalization") return make_layer_normalization(work, x, weights);
  if (work.layer == "GroupNormalization") {
    return make_group_normalization(work, format, x, weights);
  }
  if (work.layer == "BatchNormalization") {
    return make_batch_normalization(work, format, x, weights);
  }
  if (work.layer == "LSTM" || work.layer == "StackedLSTM") {
    return make_recurrent_layer<nn::LSTM, nn::LSTMOptions>(work, x, weights, false);
  }
  if (work.layer == "GRU" || work.layer == "StackedGRU") {
    return make_recurrent_layer<nn::GRU, nn::GRUOptions>(work, x, weights, true);
  }
  if (work.layer == "MultiHeadAttention") return make_attention(work, x, weights);
  return make_image_layer(work, format, x, weights);
}

}  // namespace keel::bench
