// Pairwise dot products of the features of each sample (DLRM, Naumov et al. 2019), on raw memory.
//
// Each feature is a separate array, so the outputs of towers and lookups need not be stacked. T
// is float or double. Every sum has one fixed order.
#pragma once

#include <cstdint>
#include <span>

namespace keel::kernels {

// The set of pairs (i, j): i > j, or i >= j with `self`. Pairs are in the order (1, 0), (2, 0),
// (2, 1), ...; with `self` the order is (0, 0), (1, 0), (1, 1), ...
struct FeaturePairs {
  int64_t features = 0, dim = 0;
  bool self = false;

  // The number of partners of feature i: all features before it, and itself if `self`.
  int64_t partners(int64_t i) const { return self ? i + 1 : i; }
  // The position of pair (i, 0), which is the number of pairs of the features before i.
  int64_t before(int64_t i) const { return i * (self ? i + 1 : i - 1) / 2; }
  // The number of pairs.
  int64_t count() const { return before(features); }
};

// The features of a batch: sample b of feature f is the `dim` elements from first[f] + b * stride.
template <class T>
struct FeatureRows {
  std::span<T* const> first;
  int64_t stride = 0;
};

// Computes out[b, pair (i, j)] = x_i . x_j.
template <class T>
void dot_pairs(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x, T* out);

// Computes the dot products of one sample, with feature f at features[f]. `scratch` has room for
// dot_pairs_scratch() floats. Allocates nothing.
void dot_pairs(const FeaturePairs& pairs, std::span<const float* const> features, float* scratch,
               float* out);
// The number of floats of scratch memory that the one-sample dot_pairs() needs.
int64_t dot_pairs_scratch(const FeaturePairs& pairs);

// Computes out[b, pair (i, j)] = x_i . y_j + y_i . x_j, the derivative of dot_pairs() in direction
// y.
template <class T>
void dot_pairs_along(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x,
                     const FeatureRows<const T>& y, T* out);

// Computes the gradient of dot_pairs(): dx_i = sum over the pairs that contain i of dy[b, pair]
// times the other feature. Pair (i, i) contributes 2 x_i. A feature whose dx.first is null gets no
// gradient.
template <class T>
void dot_pairs_back(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x,
                    const T* dy, const FeatureRows<T>& dx);

}  // namespace keel::kernels
