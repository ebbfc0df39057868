#include <keel/framework/kernels/attention/fused_attention.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <keel/framework/base/parallel.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/gemm/gemm.h>

namespace keel::kernels {
namespace {

// The products of a block fit into the second-level cache.
constexpr int64_t kQueries = 64, kKeys = 256;
constexpr float kHidden = 1e9F;

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Returns the keys that one of the queries may see. Without `seen`, every query sees a key, so that
// the others have a weight of exactly 0 and may be skipped.
Range keys_of(const Attention& a, Range queries) {
  Range out = {0, a.keys};
  if (a.mask.seen != nullptr) return out;
  if (a.mask.causal) out.end = std::min(out.end, queries.end);
  if (a.mask.window > 0) {
    out.begin = std::max<int64_t>(0, queries.begin - a.mask.window + 1);
    out.end = std::min(out.end, queries.end - 1 + a.mask.window);
  }
  // A query beyond the last key may see none; Keras then gives all of them equal weights.
  return queries.end - 1 - (a.mask.window > 0 ? a.mask.window - 1 : a.keys) >= a.keys
             ? Range{0, a.keys}
             : out;
}

// Reduces the products of keys that are not seen.
void hide(const Attention& a, int64_t matrix, Range queries, Range keys, float* products) {
  const AttentionMask& mask = a.mask;
  const int64_t part = mask.matrices <= 1 ? 0 : matrix / (a.matrices / mask.matrices);
  for (int64_t i = queries.begin; i < queries.end; ++i) {
    float* row = products + (i - queries.begin) * keys.size();
    if (mask.seen != nullptr) {
      const bool* seen = mask.seen + (part * mask.rows + (mask.rows == 1 ? 0 : i)) * mask.columns;
      const int64_t step = mask.columns == 1 ? 0 : 1;
      for (int64_t j = 0; j < keys.size(); ++j) {
        if (!seen[step * (keys.begin + j)]) row[j] -= kHidden;
      }
    }
    if (!mask.causal && mask.window <= 0) continue;
    int64_t first = 0, end = a.keys;
    if (mask.causal) end = std::min(end, i + 1);
    if (mask.window > 0) {
      first = std::max(first, i - mask.window + 1);
      end = std::min(end, i + mask.window);
    }
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      const bool by_mask = row[j - keys.begin] <= -kHidden / 2;
      if ((j < first || j >= end) && !by_mask) row[j - keys.begin] -= kHidden;
    }
  }
}

// Computes the products of a block of queries and a block of keys.
void products_of(const Attention& a, int64_t matrix, const float* scaled, Range queries, Range keys,
                 float* products) {
  const float* key = a.key + (matrix * a.keys + keys.begin) * a.dim;
  gemm(scaled, key, products, queries.size(), keys.size(), a.dim, false, true, {}, a.precision);
  hide(a, matrix, queries, keys, products);
}

void scale_rows(const Attention& a, int64_t matrix, Range queries, float* to) {
  const float* from = a.query + (matrix * a.queries + queries.begin) * a.dim;
  for (int64_t i = 0; i < queries.size() * a.dim; ++i) to[i] = from[i] * a.scale;
}

// The state of a block of queries while it goes through the keys.
struct Accumulator {
  explicit Accumulator(const Attention& a)
      : scaled(kQueries * a.dim), products(kQueries * kKeys), part(kQueries * a.value_dim) {}
  std::vector<float> scaled, products, part;
};

void attend_block(const Attention& a, int64_t matrix, Range queries, Accumulator& s, float* out,
                  float* statistics) {
  scale_rows(a, matrix, queries, s.scaled.data());
  const int64_t n = queries.size();
  std::fill_n(out, n * a.value_dim, 0.0F);
  for (int64_t i = 0; i < n; ++i) {
    statistics[2 * i] = -std::numeric_limits<float>::infinity();
    statistics[2 * i + 1] = 0;
  }
  const Range all = keys_of(a, queries);
  for (int64_t at = all.begin; at < all.end; at += kKeys) {
    const Range keys = {at, std::min(all.end, at + kKeys)};
    products_of(a, matrix, s.scaled.data(), queries, keys, s.products.data());
    for (int64_t i = 0; i < n; ++i) {
      float* row = s.products.data() + i * keys.size();
      float most = statistics[2 * i];
      for (int64_t j = 0; j < keys.size(); ++j) most = std::max(most, row[j]);
      for (int64_t j = 0; j < keys.size(); ++j) row[j] = math::exp(row[j] - most);
      float sum = 0;
      for (int64_t j = 0; j < keys.size(); ++j) sum += row[j];
      const float keep = at == all.begin ? 0 : math::exp(statistics[2 * i] - most);
      statistics[2 * i] = most;
      statistics[2 * i + 1] = statistics[2 * i + 1] * keep + sum;
      if (keep == 1) continue;
      for (int64_t c = 0; c < a.value_dim; ++c) out[i * a.value_dim + c] *= keep;
    }
    const float* value = a.value + (matrix * a.keys + keys.begin) * a.value_dim;
    gemm(s.products.data(), value, s.part.data(), n, a.value_dim, keys.size(), false, false, {},
         a.precision);
    for (int64_t i = 0; i < n * a.value_dim; ++i) out[i] += s.part[i];
  }
  for (int64_t i = 0; i < n; ++i) {
    const float factor = 1 / statistics[2 * i + 1];
    for (int64_t c = 0; c < a.value_dim; ++c) out[i * a.value_dim + c] *= factor;
  }
}

// Scratch of the gradients of one matrix.
struct GradientScratch {
  explicit GradientScratch(const Attention& a)
      : scaled(kQueries * a.dim),
        weights(kQueries * kKeys),
        dweights(kQueries * kKeys),
        part(std::max(kQueries, kKeys) * std::max(a.dim, a.value_dim)) {}
  std::vector<float> scaled, weights, dweights, part;
};

void add(const std::vector<float>& part, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += part[i];
}

// Adds what a block of queries contributes to the gradients of its matrix.
void gradient_of_block(const Attention& a, const AttentionGradients& g, int64_t matrix,
                       Range queries, GradientScratch& s) {
  const int64_t n = queries.size(), first = matrix * a.queries + queries.begin;
  const float *out = g.out + first * a.value_dim, *dout = g.dout + first * a.value_dim;
  const float* statistics = g.statistics + 2 * first;
  float* dquery = g.dquery + first * a.dim;
  scale_rows(a, matrix, queries, s.scaled.data());
  std::vector<float> dots(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < a.value_dim; ++c) {
      dots[i] += out[i * a.value_dim + c] * dout[i * a.value_dim + c];
    }
  }
  const Range all = keys_of(a, queries);
  for (int64_t at = all.begin; at < all.end; at += kKeys) {
    const Range keys = {at, std::min(all.end, at + kKeys)};
    const int64_t m = keys.size(), first_key = matrix * a.keys + keys.begin;
    products_of(a, matrix, s.scaled.data(), queries, keys, s.weights.data());
    gemm(dout, a.value + first_key * a.value_dim, s.dweights.data(), n, m, a.value_dim, false, true,
         {}, a.precision);
    for (int64_t i = 0; i < n; ++i) {
      float *row = s.weights.data() + i * m, *drow = s.dweights.data() + i * m;
      const float most = statistics[2 * i], factor = 1 / statistics[2 * i + 1];
      for (int64_t j = 0; j < m; ++j) row[j] = math::exp(row[j] - most) * factor;
      for (int64_t j = 0; j < m; ++j) drow[j] = row[j] * (drow[j] - dots[i]);
    }
    gemm(s.weights.data(), dout, s.part.data(), m, a.value_dim, n, true, false, {}, a.precision);
    add(s.part, m * a.value_dim, g.dvalue + first_key * a.value_dim);
    // The scaled queries contain the factor of the products.
    gemm(s.dweights.data(), s.scaled.data(), s.part.data(), m, a.dim, n, true, false, {},
         a.precision);
    add(s.part, m * a.dim, g.dkey + first_key * a.dim);
    gemm(s.dweights.data(), a.key + first_key * a.dim, s.part.data(), n, a.dim, m, false, false, {},
         a.precision);
    add(s.part, n * a.dim, dquery);
  }
  for (int64_t i = 0; i < n * a.dim; ++i) dquery[i] *= a.scale;
}

}  // namespace

void fused_attention(const Attention& a, float* out, float* statistics) {
  const int64_t blocks = (a.queries + kQueries - 1) / kQueries;
  parallel_for(a.matrices * blocks, 1, [&](int64_t begin, int64_t end) {
    Accumulator scratch(a);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t matrix = task / blocks, from = task % blocks * kQueries;
      const int64_t row = matrix * a.queries + from;
      attend_block(a, matrix, {from, std::min(a.queries, from + kQueries)}, scratch,
                   out + row * a.value_dim, statistics + 2 * row);
    }
  });
}

// One worker computes a matrix, so that the sums over its queries have a fixed order.
void fused_attention_gradient(const Attention& a, const AttentionGradients& g) {
  std::fill_n(g.dquery, a.matrices * a.queries * a.dim, 0.0F);
  std::fill_n(g.dkey, a.matrices * a.keys * a.dim, 0.0F);
  std::fill_n(g.dvalue, a.matrices * a.keys * a.value_dim, 0.0F);
  parallel_for(a.matrices, 1, [&](int64_t begin, int64_t end) {
    GradientScratch scratch(a);
    for (int64_t matrix = begin; matrix < end; ++matrix) {
      for (int64_t from = 0; from < a.queries; from += kQueries) {
        gradient_of_block(a, g, matrix, {from, std::min(a.queries, from + kQueries)}, scratch);
      }
    }
  });
}

}  // namespace keel::kernels
