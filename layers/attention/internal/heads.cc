#include <keel/layers/attention/internal/heads.h>

#include <algorithm>

#include <keel/autodiff/ops.h>

namespace keel {
namespace {

// Returns the permutation of axes from [batch, ..., heads, dim] to [batch..., heads, steps...,
// dim].
std::vector<int> heads_first(int rank, const std::vector<int>& axes) {
  std::vector<int> out;
  for (int i = 0; i < rank - 1; ++i) {
    if (std::ranges::find(axes, i) == axes.end()) out.push_back(i);
  }
  out.insert(out.end(), axes.begin(), axes.end());
  out.push_back(rank - 1);
  return out;
}

std::vector<int> inverse(const std::vector<int>& permutation) {
  std::vector<int> out(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) out[permutation[i]] = static_cast<int>(i);
  return out;
}

// Reshapes [batch..., heads, steps..., dim] to a batch of matrices.
Tensor matrices(const Tensor& x, int steps_axes) {
  const int batch_axes = x.rank() - steps_axes - 1;
  return ops::reshape(x, {x.shape().slice(0, batch_axes).size(),
                          x.shape().slice(batch_axes, x.rank() - 1).size(), x.dim(-1)});
}

}  // namespace

HeadsResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                   const HeadsOptions& options) {
  const auto steps_axes = static_cast<int>(options.axes.size());
  const std::vector<int> order = heads_first(query.rank(), options.axes);
  const Tensor q = ops::transpose(query * options.scale, order);
  const Tensor k = ops::transpose(key, order), v = ops::transpose(value, order);
  const int batch_axes = q.rank() - steps_axes - 1;
  const Shape leading = q.shape().slice(0, batch_axes);
  const Shape query_steps = q.shape().slice(batch_axes, q.rank() - 1);
  const Shape full = leading + query_steps + k.shape().slice(batch_axes, k.rank() - 1);

  Tensor weights = ops::matmul(matrices(q, steps_axes), matrices(k, steps_axes), false, true);
  const Shape flat = weights.shape();
  if (options.mask) {
    Tensor mask = options.mask;
    while (mask.rank() < full.rank()) mask = ops::expand_dims(mask, mask.rank() - 2 * steps_axes);
    weights = ops::reshape(masked_scores(ops::reshape(weights, full), mask), flat);
  }
  weights = ops::softmax(weights);
  const Tensor scores = ops::reshape(weights, full);
  if (options.dropout) weights = options.dropout(weights);
  const Tensor mixed = ops::matmul(weights, matrices(v, steps_axes));
  const Tensor output = ops::reshape(mixed, leading + query_steps + Shape{v.dim(-1)});
  return {.output = ops::transpose(output, inverse(order)), .scores = scores};
}

Tensor mask_of_heads(const AttentionParts<TensorLike>& parts) {
  const Tensor query = parts.query.tensor(), value = parts.value.tensor();
  Tensor out;
  const auto add_steps = [&](const Tensor& mask) {
    if (mask) out = both_masks(out, ops::expand_dims(mask, mask.rank() - 1));
  };
  if (query.mask()) out = ops::expand_dims(query.mask(), query.mask().rank());
  add_steps(value.mask());
  if (parts.key) add_steps(parts.key->tensor().mask());
  if (is_set(parts.use_causal_mask)) out = both_masks(out, causal_mask(query.dim(1), value.dim(1)));
  if (!parts.attention_mask) return out;
  return both_masks(ops::cast(parts.attention_mask->tensor(), DType::kBool), out);
}

Tensors attention_results(const Tensor& output, const Tensor& scores, bool with_scores) {
  if (!with_scores) return output;
  return Tensors::tuple({output, scores});
}

}  // namespace keel
