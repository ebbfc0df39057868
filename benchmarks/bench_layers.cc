// Layers for images and sequences: one forward and backward pass, and training steps of a small
// residual network, against libtorch. libtorch keeps images with the channels first or last; the
// ratio is to the faster of both. Attention is also timed without storing the weights (fused)
// against separate products, for lengths around the threshold that
// layers/attention/internal/heads.cc uses.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/convolution/conv.h>
#include <keel/layers/convolution/conv_transpose.h>
#include <keel/layers/convolution/depthwise_conv.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/keras_ops/nn.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/optimizers/sgd.h>

#include "benchmarks/peer/layer_peer.h"
#include "benchmarks/peer/peer.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/pages.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr int64_t kClasses = 10;

std::vector<WeightValues> values_of(const std::vector<Variable>& variables) {
  std::vector<WeightValues> out;
  for (const Variable& variable : variables) {
    const Tensor value = variable.read();
    const std::span<const int64_t> shape = value.shape().dims();
    out.push_back({{shape.begin(), shape.end()}, value.to_vector<float>()});
  }
  return out;
}

// The work of one contender, and what it computed.
class OwnWork {
 public:
  virtual ~OwnWork() = default;
  virtual void step() = 0;
  virtual std::vector<float> output() const = 0;
  // The weights before the first step, as make_layer_peer() takes them.
  virtual std::vector<WeightValues> weights() const = 0;
};

LayerHandle<Layer> make_benchmark_layer(const LayerWork& work) {
  const int64_t units = work.units, window = work.window;
  if (work.layer == "Conv2D") {
    return layers::Conv2D({.filters = units, .kernel_size = window, .padding = "same"});
  }
  if (work.layer == "DepthwiseConv2D") {
    return layers::DepthwiseConv2D({.kernel_size = window, .padding = "same"});
  }
  if (work.layer == "Conv2DTranspose") {
    return layers::Conv2DTranspose(
        {.filters = units, .kernel_size = window, .strides = 2, .padding = "same"});
  }
  if (work.layer == "SeparableConv2D") {
    return layers::SeparableConv2D({.filters = units, .kernel_size = window, .padding = "same"});
  }
  if (work.layer == "Conv3D") {
    return layers::Conv3D({.filters = units, .kernel_size = window, .padding = "same"});
  }
  if (work.layer == "LayerNormalization") return layers::LayerNormalization({});
  if (work.layer == "GroupNormalization") {
    return layers::GroupNormalization({.groups = static_cast<int>(units)});
  }
  if (work.layer == "BatchNormalization") return layers::BatchNormalization({});
  if (work.layer == "StackedLSTM") {
    return Sequential({.layers = {layers::LSTM({.units = units, .return_sequences = true}),
                                  layers::LSTM({.units = units, .return_sequences = true})}});
  }
  if (work.layer == "StackedGRU") {
    return Sequential({.layers = {layers::GRU({.units = units, .return_sequences = true}),
                                  layers::GRU({.units = units, .return_sequences = true})}});
  }
  if (work.layer == "MaxPooling2D") return layers::MaxPooling2D({.pool_size = window});
  if (work.layer == "AveragePooling2D") return layers::AveragePooling2D({.pool_size = window});
  if (work.layer == "LSTM") return layers::LSTM({.units = units, .return_sequences = true});
  if (work.layer == "GRU") return layers::GRU({.units = units, .return_sequences = true});
  return layers::MultiHeadAttention({.num_heads = units, .key_dim = work.input[2] / units});
}

// The input is a variable, so that one pass computes its gradient as well.
class OwnLayer final : public OwnWork {
 public:
  OwnLayer(const LayerWork& work, const Tensor& input)
      : layer_(make_benchmark_layer(work)),
        input_(input, {.name = "input"}),
        attends_(work.layer == "MultiHeadAttention") {
    call();  // builds the layer
  }

  void step() override {
    GradientTape tape;
    output_ = call();
    std::vector<Variable> sources = layer_->trainable_variables();
    sources.push_back(input_);
    tape.gradient(output_, sources);
  }
  std::vector<float> output() const override { return output_.to_vector<float>(); }
  std::vector<WeightValues> weights() const override {
    return values_of(layer_->trainable_variables());
  }

 private:
  Tensor call() {
    const Tensor x = input_.read();
    return layer_(attends_ ? Tensors::list({x, x}) : Tensors(x), {.training = true}).tensor();
  }

  LayerHandle<Layer> layer_;
  Variable input_;
  const bool attends_;
  Tensor output_;
};

// The network of Keras's "ResNet v1" example with one block a stage.
class OwnResNet final : public OwnWork {
 public:
  OwnResNet(Tensor input, Tensor labels) : input_(std::move(input)), labels_(std::move(labels)) {
    add(16, 3, 1);
    for (const int64_t filters : {16, 32, 64}) {
      const int64_t strides = filters == 16 ? 1 : 2;
      add(filters, 3, strides);
      add(filters, 3, 1);
      if (strides > 1) add(filters, 1, strides);
    }
    logits(false);  // builds the layers
  }

  void step() override {
    GradientTape tape;
    loss_ = ops::mean(losses::sparse_categorical_crossentropy(labels_, logits(true), true));
    const std::vector<Variable> variables = trainable_variables();
    optimizer_->apply_gradients(tape.gradient(loss_, variables), variables);
  }
  std::vector<float> output() const override { return {loss_.item<float>()}; }
  std::vector<WeightValues> weights() const override { return values_of(trainable_variables()); }

 private:
  struct Unit {
    layers::Conv2D convolution;
    layers::BatchNormalization normalization;
  };

  void add(int64_t filters, int64_t window, int64_t strides) {
    units_.push_back({layers::Conv2D({.filters = filters,
                                      .kernel_size = window,
                                      .strides = strides,
                                      .padding = "same",
                                      .use_bias = false}),
                      layers::BatchNormalization({.epsilon = 1e-5})});
  }

  std::vector<Variable> trainable_variables() const {
    std::vector<Variable> out;
    const auto append = [&out](const auto& layer) {
      for (const Variable& variable : layer->trainable_variables()) out.push_back(variable);
    };
    for (const Unit& unit : units_) {
      append(unit.convolution);
      append(unit.normalization);
    }
    append(dense_);
    return out;
  }

  Tensor apply(size_t unit, const Tensor& x, bool training) {
    return units_[unit].normalization(units_[unit].convolution(x), {.training = training});
  }

  Tensor logits(bool training) {
    size_t unit = 0;
    Tensor x = ops::relu(apply(unit++, input_, training));
    for (int stage = 0; stage < 3; ++stage) {
      const Tensor inner = ops::relu(apply(unit, x, training));
      const Tensor main = apply(unit + 1, inner, training);
      const Tensor shortcut = stage == 0 ? x : apply(unit + 2, x, training);
      unit += stage == 0 ? 2 : 3;
      x = ops::relu(ops::add(main, shortcut));
    }
    return dense_(pooling_(x));
  }

  const Tensor input_, labels_;
  std::vector<Unit> units_;
  layers::GlobalAveragePooling2D pooling_{GlobalPoolingOptions{}};
  layers::Dense dense_{DenseOptions{.units = kClasses}};
  OptimizerHandle optimizer_ = optimizers::SGD({.learning_rate = 0.01, .momentum = 0.9});
  Tensor loss_;
};

std::string name_of(const LayerWork& work) {
  std::string name = work.layer + " [";
  for (size_t i = 0; i < work.input.size(); ++i) {
    name += (i == 0 ? "" : ", ") + std::to_string(work.input[i]);
  }
  name += "]";
  if (work.window > 0) name += " window " + std::to_string(work.window);
  if (work.units > 0) name += " units " + std::to_string(work.units);
  return name;
}

void run_case(Report& report, const Options& options, const LayerWork& work) {
  const std::string name = name_of(work);
  if (!options.wants(name)) return;
  const Shape shape(work.input);
  std::vector<float> x(static_cast<size_t>(shape.size()));
  fill(x.data(), shape.size(), 1);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < work.input[0]; ++i) labels.push_back(i % kClasses);

  const Tensor input = Tensor::from(x, shape);
  std::unique_ptr<OwnWork> own;
  if (work.layer == "ResNet") {
    own = std::make_unique<OwnResNet>(input, Tensor::from(labels, {work.input[0]}));
  } else {
    own = std::make_unique<OwnLayer>(work, input);
  }
  const std::vector<WeightValues> weights = own->weights();
  own->step();
  const std::vector<float> result = own->output();

  std::vector<Contender> contenders = {{"ours", [&own] { own->step(); }}};
  std::vector<std::unique_ptr<LayerPeer>> peers;
  const bool image = work.input.size() >= 4;
  for (const MemoryFormat format : {MemoryFormat::kChannelsLast, MemoryFormat::kChannelsFirst}) {
    if (!image && format == MemoryFormat::kChannelsFirst) continue;
    auto peer = make_layer_peer(work, format, x, weights, labels);
    if (peer == nullptr) continue;
    peer->step();
    const std::vector<float> theirs = peer->output();
    report.check(name,
                 relative_difference(result.data(), theirs.data(),
                                     static_cast<int64_t>(std::min(result.size(), theirs.size()))),
                 1e-3);
    contenders.push_back(
        {format == MemoryFormat::kChannelsLast ? "channels last" : "channels first",
         [peer = peer.get()] { peer->step(); }});
    peers.push_back(std::move(peer));
  }
  const Comparison times =
      compare(std::move(contenders),
              {.seconds_per_slice = options.quick ? 0.01 : 0.05, .turns = options.quick ? 7 : 21});
  Result row = {.op = work.layer,
                .threads = options.threads,
                .value = times.timings[0].median * 1e3,
                .unit = "ms/step",
                .labels = {{"case", name}}};
  if (!peers.empty()) {
    size_t best = 1;
    for (size_t i = 2; i <= peers.size(); ++i) {
      if (times.ratio(best, i) > 1) best = i;
    }
    row.ratio_to_libtorch = times.ratio(best, 0);
    row.more.emplace_back("libtorch", times.timings[best].median * 1e3);
  }
  report.add(row);
}

// Times ops::attention() against separate products for 4 heads. The ratio is in "separate/fused".
void run_attention_case(Report& report, const Options& options, int64_t steps, int64_t width,
                        bool causal, bool backward) {
  const int64_t batch = std::max<int64_t>(1, 4096 / steps);
  const std::string name = "attention [" + std::to_string(batch) + ", " + std::to_string(steps) +
                           ", 4, " + std::to_string(width) + "] " + (causal ? "causal " : "") +
                           (backward ? "forward and backward" : "forward");
  if (!options.wants(name)) return;
  const Shape shape = {batch, steps, 4, width};
  std::vector<Variable> variables;
  for (const unsigned seed : {1U, 2U, 3U}) {
    std::vector<float> values(static_cast<size_t>(shape.size()));
    fill(values.data(), shape.size(), seed);
    variables.emplace_back(Tensor::from(values, shape), VariableOptions{.name = "input"});
  }
  const auto attend = [&](bool fused) {
    return keras_ops::dot_product_attention(variables[0].read(), variables[1].read(),
                                            variables[2].read(),
                                            {.is_causal = causal, .flash_attention = fused});
  };
  const auto work = [&](bool fused) {
    return [&attend, &variables, fused, backward] {
      if (!backward) {
        attend(fused);
        return;
      }
      GradientTape tape;
      const Tensor y = attend(fused);
      tape.gradient(y, variables);
    };
  };
  const std::vector<float> separate = attend(false).to_vector<float>();
  const std::vector<float> fused = attend(true).to_vector<float>();
  report.check(
      name,
      relative_difference(separate.data(), fused.data(), static_cast<int64_t>(separate.size())),
      1e-3);
  const Comparison times =
      compare({{"fused", work(true)}, {"separate", work(false)}},
              {.seconds_per_slice = options.quick ? 0.01 : 0.05, .turns = options.quick ? 7 : 21});
  report.add({.op = "attention",
              .dim = width,
              .threads = options.threads,
              .value = times.timings[0].median * 1e3,
              .unit = "ms/step",
              .more = {{"separate/fused", times.ratio(1, 0)}},
              .labels = {{"case", name}}});
}

int run(const Options& options) {
  set_peer_threads(options.threads);
  Report report(options, "bench_layers");
  const std::vector<LayerWork> works = {
      {.layer = "Conv2D", .input = {32, 28, 28, 64}, .units = 64, .window = 3},
      {.layer = "Conv2D", .input = {32, 28, 28, 64}, .units = 128, .window = 1},
      {.layer = "Conv2D", .input = {32, 56, 56, 3}, .units = 32, .window = 5},
      {.layer = "Conv2D", .input = {32, 14, 14, 256}, .units = 256, .window = 3},
      {.layer = "DepthwiseConv2D", .input = {32, 28, 28, 64}, .window = 3},
      {.layer = "SeparableConv2D", .input = {32, 28, 28, 64}, .units = 128, .window = 3},
      {.layer = "Conv2DTranspose", .input = {32, 14, 14, 128}, .units = 64, .window = 4},
      {.layer = "Conv3D", .input = {8, 16, 16, 16, 16}, .units = 32, .window = 3},
      {.layer = "LayerNormalization", .input = {32, 128, 256}},
      {.layer = "GroupNormalization", .input = {32, 28, 28, 64}, .units = 8},
      {.layer = "GroupNormalization", .input = {32, 28, 28, 64}, .units = 64},
      {.layer = "BatchNormalization", .input = {32, 28, 28, 64}},
      {.layer = "MaxPooling2D", .input = {32, 56, 56, 64}, .window = 2},
      {.layer = "AveragePooling2D", .input = {32, 56, 56, 64}, .window = 2},
      {.layer = "LSTM", .input = {32, 64, 64}, .units = 128},
      {.layer = "GRU", .input = {32, 64, 64}, .units = 128},
      {.layer = "StackedLSTM", .input = {32, 64, 64}, .units = 128},
      {.layer = "StackedGRU", .input = {32, 64, 64}, .units = 128},
      {.layer = "MultiHeadAttention", .input = {16, 128, 128}, .units = 8},
      {.layer = "MultiHeadAttention", .input = {2, 512, 256}, .units = 8},
      {.layer = "ResNet", .input = {32, 33, 33, 3}, .units = kClasses},
  };
  for (const LayerWork& work : works) run_case(report, options, work);
  for (const int64_t width : {32, 64}) {
    for (const int64_t steps : {16, 32, 48, 64, 96, 128, 256, 512}) {
      for (const bool causal : {false, true}) {
        run_attention_case(report, options, steps, width, causal, false);
        run_attention_case(report, options, steps, width, causal, true);
      }
    }
  }
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_layers",
      "Layers for images and sequences: one forward and backward pass, and training steps of a "
      "small\nresidual network with batches of 32, against libtorch."));
}
