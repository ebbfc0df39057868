// Functions of keras.ops for neural networks. The activation functions are those of
// keel::activations; integers become float32. Functions along `axis` accept negative axes.
#pragma once

#include <string>

#include <keel/autodiff/keras_ops/operand.h>

namespace keel::keras_ops {

// ---- Elementwise activation functions. The formulas are in keel/layers/activations.h.

// Apply the function of this name to each element.
Tensor relu(const Tensor& x);
Tensor relu6(const Tensor& x);
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.2);
Tensor elu(const Tensor& x, double alpha = 1);
Tensor celu(const Tensor& x, double alpha = 1);
Tensor selu(const Tensor& x);
Tensor gelu(const Tensor& x, bool approximate = true);
Tensor silu(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor log_sigmoid(const Tensor& x);
Tensor hard_sigmoid(const Tensor& x);
Tensor hard_silu(const Tensor& x);
Tensor hard_tanh(const Tensor& x);
Tensor tanh_shrink(const Tensor& x);
Tensor hard_shrink(const Tensor& x, double threshold = 0.5);
Tensor soft_shrink(const Tensor& x, double threshold = 0.5);
Tensor threshold(const Tensor& x, double threshold, double default_value);
Tensor softplus(const Tensor& x);
Tensor softsign(const Tensor& x);
Tensor squareplus(const Tensor& x, double b = 4);
Tensor sparse_plus(const Tensor& x);
Tensor sparse_sigmoid(const Tensor& x);
Tensor swish(const Tensor& x);       // the same as silu()
Tensor hard_swish(const Tensor& x);  // the same as hard_silu()

// ---- Functions along axes.

// Apply the function of this name along an axis.
Tensor softmax(const Tensor& x, const Axes& axis = -1);  // over all listed axes together
Tensor log_softmax(const Tensor& x, const Axes& axis = -1);
Tensor sparsemax(const Tensor& x, int axis = -1);
Tensor glu(const Tensor& x, int axis = -1);

// ---- Normalization. `epsilon` is 1e-7 by default.

// Returns x divided by its norm of this order, which is at least epsilon.
Tensor normalize(const Tensor& x, const Axes& axis = -1, double order = 2,
                 std::optional<double> epsilon = {});
// Returns (x - mean) / sqrt(variance + epsilon) * scale + offset; all are vectors along `axis`.
Tensor batch_normalization(const Tensor& x, const Tensor& mean, const Tensor& variance, int axis,
                           const std::optional<Tensor>& offset = {},
                           const std::optional<Tensor>& scale = {}, double epsilon = 1e-3);
// Normalizes x to mean 0 and variance 1 over `axis`, then multiplies by gamma and adds beta.
Tensor layer_normalization(const Tensor& x, const std::optional<Tensor>& gamma = {},
                           const std::optional<Tensor>& beta = {}, const Axes& axis = -1,
                           std::optional<double> epsilon = {});
// Divides x by the root of its mean square over `axis`, then multiplies by `scale`.
Tensor rms_normalization(const Tensor& x, const std::optional<Tensor>& scale = {},
                         const Axes& axis = -1, std::optional<double> epsilon = {});

// ---- Attention.

// The optional arguments of dot_product_attention().
struct AttentionOptions {
  std::optional<Tensor> bias = {};   // added to the scaled products
  std::optional<Tensor> mask = {};   // bool [batch, heads, queries, keys]: which keys count
  std::optional<double> scale = {};  // default: 1 / sqrt(dim)
  bool is_causal = false;            // query i sees keys 0 to i
  // Do not store the products (autodiff/attention_ops.h). Unset: where this is faster, for float32
  // without bias and soft cap. If set with them, the call throws ValueError.
  std::optional<bool> flash_attention = {};
  std::optional<double> attn_logits_soft_cap = {};  // c: products z become c tanh(z / c)
};
// Returns softmax(query . key) . value for query [batch, queries, heads, dim] and key and value
// [batch, keys, heads, dim].
Tensor dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                             const AttentionOptions& options = {});

// ---- Losses. Probabilities are clipped to [1e-7, 1 - 1e-7].

// Return the cross-entropy of each element, or of each distribution along `axis`.
Tensor binary_crossentropy(const Tensor& target, const Tensor& output, bool from_logits = false);
Tensor categorical_crossentropy(const Tensor& target, const Tensor& output,
                                bool from_logits = false, int axis = -1);
// `target` has class numbers.
Tensor sparse_categorical_crossentropy(const Tensor& target, const Tensor& output,
                                       bool from_logits = false, int axis = -1);
// Returns minus the log of the probability of each sequence of class numbers (connectionist
// temporal classification). `output` [batch, steps, classes] holds logits; only the given lengths
// of each row of `target` and `output` count. `mask_index` is the class of the blank.
Tensor ctc_loss(const Tensor& target, const Tensor& output, const Tensor& target_length,
                const Tensor& output_length, int64_t mask_index = 0);
// The optional arguments of ctc_decode().
struct CtcDecodeOptions {
  std::string strategy = "greedy";  // or "beam_search"
  int64_t beam_width = 100;         // of beam search: the number of label sequences that are kept
  int64_t top_paths = 1;            // of beam search: the number of results
  bool merge_repeated = true;       // greedy: equal neighbors are one label
  int64_t mask_index = 0;           // the class of the blank
};
// Returns the most likely labels of logits [batch, steps, classes], of which the first
// sequence_lengths [batch] steps count: int32 labels [top_paths, batch, steps], padded by -1, and
// scores [batch, top_paths]. Those of beam search are log probabilities. Those of "greedy" are
// minus the sum of the greatest logits. No gradient. Throws ValueError for unknown strategies and
// shapes that do not fit.
std::pair<Tensor, Tensor> ctc_decode(const Tensor& inputs, const Tensor& sequence_lengths,
                                     const CtcDecodeOptions& options = {});
// The ratio of the peak to the noise in decibels: 10 log10(max_val^2 / mean((x1 - x2)^2)).
Tensor psnr(const Tensor& x1, const Tensor& x2, double max_val);

}  // namespace keel::keras_ops
