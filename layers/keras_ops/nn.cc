#include <keel/layers/keras_ops/nn.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <keel/autodiff/attention_ops.h>
#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/linalg.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/autodiff/ops.h>
#include <keel/layers/activations.h>
#include <keel/layers/losses/ctc.h>

namespace keel::keras_ops {
namespace {

using internal::floating;

constexpr double kEpsilon = 1e-7;  // keras.config.epsilon()

// Applies a function along the last axis to several axes at once.
Tensor along_axes(Tensor (*fn)(const Tensor&, int), const Tensor& values, const Axes& axis) {
  const Tensor x = floating(values);
  const std::vector<int> axes = axis.of(x.rank());
  if (axes.size() == 1) return fn(x, axes[0]);
  std::vector<int> last;
  for (size_t i = 0; i < axes.size(); ++i) last.push_back(static_cast<int>(i - axes.size()));
  const Tensor moved = moveaxis(x, axes, last);
  const Tensor flat = fn(internal::flatten_axes(x, axes), -1);
  return moveaxis(ops::reshape(flat, moved.shape()), last, axes);
}

// Reshapes a vector so that it broadcasts along one axis of x.
Tensor along(const Tensor& vector, const Tensor& x, int axis) {
  Shape shape(std::vector<int64_t>(x.rank(), 1));
  return ops::reshape(vector, shape.with(axis, vector.dim(0)));
}

// Reshapes a scale so that its axes are the listed ones of x.
Tensor along(const Tensor& scale, const Tensor& x, const std::vector<int>& axes) {
  if (scale.rank() != static_cast<int>(axes.size())) return scale;
  std::vector<int64_t> dims(x.rank(), 1);
  for (size_t i = 0; i < axes.size(); ++i) dims[axes[i]] = scale.dim(static_cast<int>(i));
  return ops::reshape(scale, Shape(dims));
}

Tensor clipped(const Tensor& probabilities) {
  return ops::clip_by_value(probabilities, kEpsilon, 1 - kEpsilon);
}

// Returns the logarithms of the probabilities of the classes.
Tensor log_probabilities(const Tensor& output, bool from_logits, int axis) {
  const Tensor x = floating(output);
  if (from_logits) return ops::log_softmax(x, axis);
  return ops::log(clipped(x / ops::sum(x, {axis}, true)));
}

}  // namespace

// ---- Elementwise activation functions.

Tensor relu(const Tensor& x) { return activations::relu(floating(x)); }
Tensor relu6(const Tensor& x) { return activations::relu6(floating(x)); }
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return activations::leaky_relu(floating(x), negative_slope);
}
Tensor elu(const Tensor& x, double alpha) { return activations::elu(floating(x), alpha); }
Tensor celu(const Tensor& x, double alpha) { return activations::celu(floating(x), alpha); }
Tensor selu(const Tensor& x) { return activations::selu(floating(x)); }
Tensor gelu(const Tensor& x, bool approximate) {
  return activations::gelu(floating(x), approximate);
}
Tensor silu(const Tensor& x) { return activations::silu(floating(x)); }
Tensor swish(const Tensor& x) { return silu(x); }
Tensor sigmoid(const Tensor& x) { return activations::sigmoid(floating(x)); }
Tensor log_sigmoid(const Tensor& x) { return activations::log_sigmoid(floating(x)); }
Tensor hard_sigmoid(const Tensor& x) { return activations::hard_sigmoid(floating(x)); }
Tensor hard_silu(const Tensor& x) { return activations::hard_silu(floating(x)); }
Tensor hard_swish(const Tensor& x) { return hard_silu(x); }
Tensor hard_tanh(const Tensor& x) { return activations::hard_tanh(floating(x)); }
Tensor tanh_shrink(const Tensor& x) { return activations::tanh_shrink(floating(x)); }
Tensor hard_shrink(const Tensor& x, double threshold) {
  return activations::hard_shrink(floating(x), threshold);
}
Tensor soft_shrink(const Tensor& x, double threshold) {
  return activations::soft_shrink(floating(x), threshold);
}
Tensor threshold(const Tensor& x, double threshold, double default_value) {
  return activations::threshold(floating(x), threshold, default_value);
}
Tensor softplus(const Tensor& x) { return activations::softplus(floating(x)); }
Tensor softsign(const Tensor& x) { return activations::softsign(floating(x)); }
Tensor squareplus(const Tensor& x, double b) { return activations::squareplus(floating(x), b); }
Tensor sparse_plus(const Tensor& x) { return activations::sparse_plus(floating(x)); }
Tensor sparse_sigmoid(const Tensor& x) { return activations::sparse_sigmoid(floating(x)); }

// ---- Functions along axes.

Tensor softmax(const Tensor& x, const Axes& axis) { return along_axes(ops::softmax, x, axis); }
Tensor log_softmax(const Tensor& x, const Axes& axis) {
  return along_axes(ops::log_softmax, x, axis);
}
Tensor sparsemax(const Tensor& x, int axis) { return ops::sparsemax(floating(x), axis); }
Tensor glu(const Tensor& x, int axis) { return activations::glu(floating(x), axis); }

// ---- Normalization.

Tensor normalize(const Tensor& x, const Axes& axis, double order, std::optional<double> epsilon) {
  const Tensor in = floating(x);
  const double least = epsilon.value_or(kEpsilon);
  if (order == 2) {
    const Tensor inverse = ops::rsqrt(sum(ops::square(in), axis, true));
    return in * minimum(inverse, 1 / least);
  }
  return in / maximum(norm(in, order, axis, true), least);
}
Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance, int axis,
                           const std::optional<Tensor>& offset, const std::optional<Tensor>& scale,
                           double epsilon) {
  const Tensor in = floating(x);
  Tensor factor = ops::rsqrt(along(variance, in, axis) + epsilon);
  if (scale) factor = factor * along(*scale, in, axis);
  const Tensor out = (in - along(mean, in, axis)) * factor;
  return offset ? out + along(*offset, in, axis) : out;
}
Tensor layer_normalization(const Tensor& x, const std::optional<Tensor>& gamma,
                           const std::optional<Tensor>& beta, const Axes& axis,
                           std::optional<double> epsilon) {
  const Tensor in = floating(x);
  const std::vector<int> axes = axis.of(in.rank());
  const Tensor centered = in - mean(in, axis, true);
  const Tensor variance = mean(ops::square(centered), axis, true);
  Tensor out = centered * ops::rsqrt(variance + epsilon.value_or(kEpsilon));
  if (gamma) out = out * along(*gamma, in, axes);
  return beta ? out + along(*beta, in, axes) : out;
}
Tensor rms_normalization(const Tensor& x, const std::optional<Tensor>& scale, const Axes& axis,
                         std::optional<double> epsilon) {
  const Tensor in = floating(x);
  const Tensor square = mean(ops::square(in), axis, true);
  const Tensor out = in * ops::rsqrt(square + epsilon.value_or(kEpsilon));
  return scale ? out * along(*scale, in, axis.of(in.rank())) : out;
}

// ---- Attention.

namespace {

// Products from which ops::attention() is used, as in layers/attention/internal/heads.cc.
constexpr int64_t kFusedProducts = 128 * 128, kFusedCausalProducts = 96 * 96;

bool fuses_attention(const Tensor& query, const Tensor& key, const AttentionOptions& options) {
  const bool plain = !options.bias && !options.attn_logits_soft_cap;
  if (options.flash_attention.value_or(false) && !plain) {
    throw ValueError("dot_product_attention: flash_attention does not support a bias or ",
                     "attn_logits_soft_cap; leave flash_attention at its default");
  }
  const bool possible =
      plain && !query.is_symbolic() && query.dtype() == DType::kFloat32 &&
      AutocastScope::operands() == ProductOperands::kUnchanged &&
      (!options.mask || (options.mask->rank() == 4 && !options.mask->is_symbolic()));
  const int64_t least = options.is_causal ? kFusedCausalProducts : kFusedProducts;
  return possible && options.flash_attention.value_or(query.dim(1) * key.dim(1) >= least);
}

Tensor fused_attention(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
                       const AttentionOptions& options) {
  const std::vector<int> order = {0, 2, 1, 3};
  const auto matrices = [&](const Tensor& x) {
    return ops::reshape(ops::transpose(x, order), {x.dim(0) * x.dim(2), x.dim(1), x.dim(3)});
  };
  Tensor mask;
  if (options.mask) {
    const Shape steps = {query.dim(1), key.dim(1)};
    const Tensor full =
        ops::broadcast_to(ops::cast(ops::cast(*options.mask, DType::kBool), DType::kInt32),
                          Shape{query.dim(0), query.dim(2)} + steps);
    mask = ops::reshape(ops::cast(full, DType::kBool), Shape{query.dim(0) * query.dim(2)} + steps);
  }
  const Tensor out = ops::attention(matrices(query), matrices(key), matrices(value),
                                    {.scale = scale, .mask = mask, .causal = options.is_causal});
  return ops::transpose(ops::reshape(out, {query.dim(0), query.dim(2), query.dim(1), value.dim(3)}),
                        order);
}

}  // namespace

Tensor dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                             const AttentionOptions& options) {
  for (const Tensor& x : {query, key, value}) {
    if (x.rank() != 4) {
      throw ValueError("dot_product_attention: query, key and value must have rank 4, received ",
                       x.shape());
    }
  }
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(query.dim(-1))));
  if (fuses_attention(query, key, options))
    return fused_attention(query, key, value, scale, options);
  Tensor logits = einsum("btnh,bsnh->bnts", {query, key}) * scale;
  if (options.attn_logits_soft_cap) {
    const double cap = *options.attn_logits_soft_cap;
    logits = ops::tanh(logits / cap) * cap;
  }
  if (options.bias) logits = add(logits, *options.bias);
  // Finite, so that a row without any key gets equal weights, as in Keras.
  const Tensor least =
      Tensor::scalar(-0.7 * std::numeric_limits<float>::max()).cast(logits.dtype());
  if (options.mask) logits = ops::where(ops::cast(*options.mask, DType::kBool), logits, least);
  if (options.is_causal) {
    const Tensor seen = tri(logits.dim(-2), logits.dim(-1), 0, DType::kBool);
    logits = ops::where(seen, logits, least);
  }
  return einsum("bnts,bsnh->btnh", {ops::softmax(logits), value});
}

// ---- Losses.

Tensor binary_crossentropy(const Tensor& target, const Tensor& output, bool from_logits) {
  const auto [labels, x] = internal::promoted_floating(target, output);
  if (from_logits) return ops::sigmoid_cross_entropy(labels, x);
  const Tensor p = clipped(x);
  return -(labels * ops::log(p) + (-labels + 1.0) * ops::log(-p + 1.0));
}
Tensor categorical_crossentropy(const Tensor& target, const Tensor& output, bool from_logits,
                                int axis) {
  const Tensor log_p = log_probabilities(output, from_logits, axis);
  return -ops::sum(multiply(target, log_p), {axis});
}
Tensor sparse_categorical_crossentropy(const Tensor& target, const Tensor& output, bool from_logits,
                                       int axis) {
  Tensor labels = target;
  if (labels.rank() == output.rank() && labels.dim(-1) == 1) labels = ops::squeeze(labels, -1);
  const Tensor log_p = log_probabilities(output, from_logits, axis);
  const int at = output.shape().normalize_axis(axis);
  const Tensor chosen = one_hot(labels, output.dim(axis), at, log_p.dtype());
  return -ops::sum(chosen * log_p, {axis});
}
Tensor ctc_loss(const Tensor& target, const Tensor& output, const Tensor& target_length,
                const Tensor& output_length, int64_t mask_index) {
  const Tensor logits = floating(output);
  if (logits.rank() != 3 || target.rank() != 2) {
    throw ValueError("ctc_loss: target must have rank 2 and output rank 3, received ",
                     target.shape(), " and ", output.shape());
  }
  // losses::ctc() takes class 0 for the blank, so the blank moves there.
  std::vector<int64_t> order = {mask_index};
  for (int64_t c = 0; c < logits.dim(-1); ++c) {
    if (c != mask_index) order.push_back(c);
  }
  const Tensor classes = Tensor::from(order, {static_cast<int64_t>(order.size())});
  const Tensor moved = mask_index == 0 ? logits : take(logits, classes, -1);
  const std::vector<int64_t> labels = internal::integers_of("ctc_loss", target);
  const std::vector<int64_t> lengths = internal::integers_of("ctc_loss", target_length);
  const std::vector<int64_t> steps = internal::integers_of("ctc_loss", output_length);
  const int64_t width = target.dim(1);
  std::vector<Tensor> out;
  for (int64_t b = 0; b < target.dim(0); ++b) {
    std::vector<int32_t> own(width);
    for (int64_t i = 0; i < std::min(lengths.at(b), width); ++i) {
      const int64_t label = labels[b * width + i];
      own[i] = static_cast<int32_t>(label < mask_index ? label + 1 : label);
    }
    const Tensor row = ops::slice(ops::slice(moved, 0, b, 1), 1, 0, steps.at(b));
    out.push_back(losses::ctc(Tensor::from(own, {1, width}), row));
  }
  return ops::concat(out, 0);
}
Tensor psnr(const Tensor& x1, const Tensor& x2, double max_val) {
  const Tensor error = mean(ops::square(subtract(x1, x2)));
  return log10(max_val * max_val * reciprocal(error)) * 10.0;
}

}  // namespace keel::keras_ops
