#include <keel/layers/attention/internal/heads.h>

#include <algorithm>
#include <cstdlib>

#include <keel/autodiff/attention_ops.h>
#include <keel/autodiff/internal/autocast.h>
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

// Returns the steps that a causal and a windowed attention may see, [1, rows, columns].
Tensor band_mask(int64_t rows, int64_t columns, bool causal, int64_t window) {
  Tensor out = Tensor::uninitialized({1, rows, columns}, DType::kBool);
  const auto values = out.mutable_data<bool>();
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      values[i * columns + j] = (!causal || j <= i) && (window <= 0 || std::abs(i - j) < window);
    }
  }
  return out;
}

// Returns the mask in which the query steps that exclude all key steps exclude none.
Tensor without_empty_rows(const Tensor& mask, int steps_axes) {
  std::vector<int> key_axes;
  for (int axis = mask.rank() - steps_axes; axis < mask.rank(); ++axis) key_axes.push_back(axis);
  const Tensor kept = ops::max(ops::cast(mask, DType::kInt32), key_axes, true);
  return ops::logical_or(mask, ops::equal(kept, Tensor::scalar<int32_t>(0)));
}

// Products from which ops::attention() is used. From there on it is up to 1.2 times as fast, and
// stores no weights; with causal masks, which let it skip half of the products, it is up to 2 times
// as fast (bench_layers --only attention).
constexpr int64_t kFusedProducts = 128 * 128, kFusedCausalProducts = 96 * 96;

bool fuses(const Tensor& query, const Tensor& key, const HeadsOptions& options) {
  const bool possible = options.axes == std::vector<int>{1} && query.rank() == 4 &&
                        query.dtype() == DType::kFloat32 && !options.dropout &&
                        AutocastScope::operands() == ProductOperands::kUnchanged;
  const bool skips = options.causal || options.window > 0;
  const int64_t least = skips ? kFusedCausalProducts : kFusedProducts;
  return possible && options.fused.value_or(query.dim(1) * key.dim(1) >= least);
}

// Returns a mask [batch or 1, heads or 1, query steps or 1, key steps or 1] in the form of
// ops::attention().
Tensor mask_of_matrices(Tensor mask, int64_t batch, int64_t heads) {
  if (!mask) return mask;
  while (mask.rank() < 4) mask = ops::expand_dims(mask, mask.rank() - 2);
  const Shape steps = mask.shape().slice(2, 4);
  if (mask.dim(1) == 1) return ops::reshape(mask, Shape{mask.dim(0)} + steps);
  const Tensor each = ops::cast(
      ops::broadcast_to(ops::cast(mask, DType::kInt32), Shape{batch, heads} + steps), DType::kBool);
  return ops::reshape(each, Shape{batch * heads} + steps);
}

HeadsResult attend_fused(const Tensor& query, const Tensor& key, const Tensor& value,
                         const HeadsOptions& options) {
  const std::vector<int> order = {0, 2, 1, 3};
  const Tensor q = ops::transpose(query, order), k = ops::transpose(key, order);
  const Tensor v = ops::transpose(value, order);
  const Tensor mixed =
      ops::attention(matrices(q, 1), matrices(k, 1), matrices(v, 1),
                     {.scale = options.scale,
                      .mask = mask_of_matrices(options.mask, query.dim(0), query.dim(2)),
                      .causal = options.causal,
                      .window = options.window});
  const Tensor output = ops::reshape(mixed, q.shape().with(3, v.dim(3)));
  return {.output = ops::transpose(output, order), .scores = {}};
}

}  // namespace

HeadsResult attend(const Tensor& query, const Tensor& key, const Tensor& value,
                   const HeadsOptions& options) {
  if (fuses(query, key, options)) return attend_fused(query, key, value, options);
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
  Tensor mask = options.mask;
  if (options.causal || options.window > 0) {
    mask = both_masks(mask, band_mask(query.dim(1), key.dim(1), options.causal, options.window));
  }
  if (mask) {
    while (mask.rank() < full.rank()) mask = ops::expand_dims(mask, mask.rank() - 2 * steps_axes);
    if (options.ignores_empty_masks) mask = without_empty_rows(mask, steps_axes);
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
  if (!parts.attention_mask) return out;
  return both_masks(ops::cast(parts.attention_mask->tensor(), DType::kBool), out);
}

Tensors attention_results(const Tensor& output, const Tensor& scores, bool with_scores) {
  if (!with_scores) return output;
  return Tensors::tuple({output, scores});
}

}  // namespace keel
