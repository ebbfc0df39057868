// Dot products of the pairs of features of each sample (DLRM, Naumov et al. 2019), on raw memory.
//
// The features need not stand side by side: each is an array of its own, so that nobody has to
// stack what towers and lookups made. T is float or double. Every sum has one fixed order.
#pragma once

#include <cstdint>
#include <span>

namespace keel::kernels {

// Which pairs (i, j) there are: i > j, or i >= j with `self`, in the order (1, 0), (2, 0), (2, 1),
// ..., which `self` starts with (0, 0).
struct FeaturePairs {
  int64_t features = 0, dim = 0;
  bool self = false;

  // Partners of feature i: all before it, and itself if self.
  int64_t partners(int64_t i) const { return self ? i + 1 : i; }
  // Position of pair (i, 0): how many pairs come before those of feature i.
  int64_t before(int64_t i) const { return i * (self ? i + 1 : i - 1) / 2; }
  int64_t count() const { return before(features); }
};

// Sample b of feature f: the `dim` elements from first[f] + b * stride.
template <class T>
struct FeatureRows {
  std::span<T* const> first;
  int64_t stride = 0;
};

// out[b, pair (i, j)] = x_i . x_j
template <class T>
void dot_pairs(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x, T* out);

// The same for one sample, with feature f at features[f]. `scratch` has room for
// dot_pairs_scratch() floats; nothing is allocated.
void dot_pairs(const FeaturePairs& pairs, std::span<const float* const> features, float* scratch,
               float* out);
int64_t dot_pairs_scratch(const FeaturePairs& pairs);

// out[b, pair (i, j)] = x_i . y_j + y_i . x_j, the derivative of dot_pairs in direction y.
template <class T>
void dot_pairs_along(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x,
                     const FeatureRows<const T>& y, T* out);

// dx_i = sum over the pairs with i of dy[b, pair] times the other feature, which is x_i twice for
// (i, i). Features whose `first` is null in dx are left out.
template <class T>
void dot_pairs_back(const FeaturePairs& pairs, int64_t batch, const FeatureRows<const T>& x,
                    const T* dy, const FeatureRows<T>& dx);

}  // namespace keel::kernels
