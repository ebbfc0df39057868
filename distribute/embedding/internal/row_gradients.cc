#include <keel/distribute/embedding/internal/row_gradients.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace keel::distribute {
namespace {

using kernels::Bags;
using kernels::Combiner;

// Returns true if the gradient of a sample may be divided: any combiner but sum, if samples have
// several ids.
bool divides(const Bags& bags, Combiner combiner) {
  return combiner != Combiner::kSum && bags.splits != nullptr;
}

// Returns the factor of a sample's gradient for each of its ids, without weights.
float gain_of(int64_t ids, Combiner combiner) {
  const auto count = static_cast<double>(ids);
  return static_cast<float>(1.0 / (combiner == Combiner::kMean ? count : std::sqrt(count)));
}

}  // namespace

void group_rows(std::span<const Bags> features, int64_t rows, kernels::RowGroups& out) {
  out.build(features, rows, std::ranges::any_of(features, &Bags::weights));
}

void RowGradients::fill(std::span<const PooledGradient> features, Combiner combiner, int64_t dim) {
  bool weighted = false, scale = false;
  for (const PooledGradient& f : features) {
    weighted = weighted || f.bags.weights != nullptr;
    scale = scale || divides(f.bags, combiner);
  }
  sources_ = {};
  // Without weights all ids of a sample have the same gain, so multiply once per sample, not per
  // id.
  scale = scale && !weighted;
  if (features.size() == 1 && features[0].gradient != nullptr && !scale) {
    sources_.rows = features[0].gradient;
  } else {
    fill_rows(features, combiner, dim, scale);
  }
  if (weighted) fill_gains(features, combiner);
}

// Stores the gradients of all samples one after the other.
void RowGradients::fill_rows(std::span<const PooledGradient> features, Combiner combiner,
                             int64_t dim, bool scale) {
  int64_t samples = 0;
  for (const PooledGradient& f : features) samples += f.bags.samples;
  rows_.resize(samples * dim);
  float* out = rows_.data();
  for (const PooledGradient& f : features) {
    const int64_t n = f.bags.samples * dim;
    if (f.gradient == nullptr) {
      std::fill_n(out, n, 0.0F);
    } else if (!scale || f.bags.splits == nullptr) {
      std::copy_n(f.gradient, n, out);
    } else {
      for (int64_t s = 0; s < f.bags.samples; ++s) {
        const int64_t ids = f.bags.splits[s + 1] - f.bags.splits[s];
        const float gain = ids == 0 ? 0.0F : gain_of(ids, combiner);
        for (int64_t i = s * dim; i < (s + 1) * dim; ++i) out[i] = gain * f.gradient[i];
      }
    }
    out += n;
  }
  sources_.rows = rows_.data();
}

void RowGradients::fill_gains(std::span<const PooledGradient> features, Combiner combiner) {
  int64_t positions = 0;
  for (const PooledGradient& f : features) positions += f.bags.positions();
  gains_.resize(positions);
  row_of_.resize(positions);
  float* gain = gains_.data();
  uint32_t* row = row_of_.data();
  uint32_t sample = 0;
  for (const PooledGradient& f : features) {
    if (f.bags.splits == nullptr) {
      std::fill_n(gain, f.bags.samples, 1.0F);
      std::iota(row, row + f.bags.samples, sample);
    } else {
      kernels::pooling_gains(f.bags, combiner, gain);
      for (int64_t s = 0; s < f.bags.samples; ++s) {
        std::fill(row + f.bags.splits[s], row + f.bags.splits[s + 1],
                  sample + static_cast<uint32_t>(s));
      }
    }
    gain += f.bags.positions();
    row += f.bags.positions();
    sample += static_cast<uint32_t>(f.bags.samples);
  }
  sources_.row_of = row_of_.data();
  sources_.gains = gains_.data();
}

}  // namespace keel::distribute
