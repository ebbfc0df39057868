#include <keel/framework/kernels/normalization/normalization.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {
namespace {

constexpr int64_t kGrain = 16384;   // elements per block of a parallel loop
constexpr int64_t kInCache = 4096;  // elements that a second pass finds in the L1 cache
constexpr int64_t kMostParts = 64;  // parts of the sums over samples

// ---- Sums. terms(...) returns the kTerms terms of one element. Up to 64 terms are added in T, and
// these sums in double.

// Returns the sums of terms(i) for i < n.
template <size_t kTerms, class T, class Terms>
std::array<double, kTerms> sum_run(int64_t n, const Terms& terms) {
  constexpr int64_t kLanes = 16, kRun = 64 * kLanes;
  std::array<double, kTerms> out = {};
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t end = std::min(n, begin + kRun);
    T lanes[kTerms][kLanes] = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) {
        const std::array<T, kTerms> term = terms(i + l);
        for (size_t k = 0; k < kTerms; ++k) lanes[k][l] += term[k];
      }
    }
    for (int64_t l = 0; i < end; ++i, ++l) {
      const std::array<T, kTerms> term = terms(i);
      for (size_t k = 0; k < kTerms; ++k) lanes[k][l] += term[k];
    }
    for (size_t k = 0; k < kTerms; ++k) {
      for (int64_t half = kLanes / 2; half > 0; half /= 2) {
        for (int64_t l = 0; l < half; ++l) lanes[k][l] += lanes[k][l + half];
      }
      out[k] += static_cast<double>(lanes[k][0]);
    }
  }
  return out;
}

// Adds the sums of terms(row, column) over the rows to totals [kTerms, columns], whose rows are
// `stride` elements apart.
template <size_t kTerms, class Terms>
void add_columns(int64_t rows, int64_t columns, const Terms& terms, double* __restrict totals,
                 int64_t stride) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    for (int64_t c = 0; c < columns; ++c) {
      const auto t = terms(r, c), u = terms(r + 1, c), v = terms(r + 2, c), w = terms(r + 3, c);
      for (size_t k = 0; k < kTerms; ++k) {
        totals[static_cast<int64_t>(k) * stride + c] +=
            static_cast<double>((t[k] + u[k]) + (v[k] + w[k]));
      }
    }
  }
  for (; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const auto t = terms(r, c);
      for (size_t k = 0; k < kTerms; ++k) {
        totals[static_cast<int64_t>(k) * stride + c] += static_cast<double>(t[k]);
      }
    }
  }
}

// ---- Statistics.

template <class T>
struct MeanAndVariance {
  T mean, variance;
};

// Returns the statistics of `count` elements with these sums of x and of x^2.
template <class T>
MeanAndVariance<T> from_sums(const Normalization& n, double sum, double squares, double count) {
  const T mean_square = static_cast<T>(squares / count);
  if (n.moments == Moments::kMeanSquare) return {0, mean_square};
  const T mean = static_cast<T>(sum / count);
  return {mean, std::max(mean_square - mean * mean, T{0})};
}

bool subtracts_mean(const Normalization& n) {
  return n.subtract_mean && n.moments != Moments::kMeanSquare;
}

template <class T>
T inverse_deviation(const Normalization& n, T variance) {
  return 1 / std::sqrt(variance + static_cast<T>(n.epsilon));
}

// gamma and beta, or ones and zeros in their place.
template <class T>
class Weights {
 public:
  Weights(const T* given, int64_t channels, T constant)
      : constants_(given == nullptr ? channels : 0) {
    if (given == nullptr) std::fill_n(constants_.data(), channels, constant);
    values_ = given == nullptr ? constants_.data() : given;
  }
  const T* data() const { return values_; }

 private:
  const Scratch<T> constants_;
  const T* values_;
};

// ---- Groups of one step, whose elements are contiguous.

template <class T>
MeanAndVariance<T> statistics_of_run(const Normalization& n, const T* x) {
  const auto count = static_cast<double>(n.width);
  if (n.moments == Moments::kDifference) {
    // The difference of the moments would show the rounding of sums in T.
    const auto sums = sum_run<2, double>(n.width, [x](int64_t i) {
      return std::array<double, 2>{static_cast<double>(x[i]), static_cast<double>(x[i] * x[i])};
    });
    return from_sums<T>(n, sums[0], sums[1], count);
  }
  if (n.moments == Moments::kMeanSquare) {
    const auto sums =
        sum_run<2, T>(n.width, [x](int64_t i) { return std::array<T, 2>{x[i], x[i] * x[i]}; });
    return from_sums<T>(n, sums[0], sums[1], count);
  }
  const double sum = sum_run<1, T>(n.width, [x](int64_t i) { return std::array<T, 1>{x[i]}; })[0];
  const T mean = static_cast<T>(sum / count);
  // The sum of the distances tells how far the rounding of sums in T has moved the mean.
  const auto sums = sum_run<2, T>(n.width, [x, mean](int64_t i) {
    const T centered = x[i] - mean;
    return std::array<T, 2>{centered, centered * centered};
  });
  const double shift = sums[0] / count;
  return {static_cast<T>(mean + shift),
          static_cast<T>(std::max(sums[1] / count - shift * shift, 0.0))};
}

template <class T>
void normalize_runs(const Normalization& n, const T* x, const T* gamma, const T* beta, T* y,
                    T* mean, T* variance) {
  const int64_t width = n.width;
  parallel_for(n.samples * n.groups, std::max<int64_t>(1, kGrain / width),
               [&](int64_t first, int64_t last) {
                 for (int64_t run = first; run < last; ++run) {
                   const T* const from = x + run * width;
                   const auto [m, v] = statistics_of_run(n, from);
                   mean[run] = m;
                   variance[run] = v;
                   const T shift = subtracts_mean(n) ? m : 0, inverse = inverse_deviation(n, v);
                   const int64_t channel = run % n.groups * width;
                   const T *const factor = gamma + channel, *const offset = beta + channel;
                   T* __restrict to = y + run * width;
                   for (int64_t i = 0; i < width; ++i) {
                     to[i] = (from[i] - shift) * inverse * factor[i] + offset[i];
                   }
                 }
               });
}

// Computes the gradient of x for one run.
template <class T>
void run_gradient(const Normalization& n, const T* x, const T* dy, const T* gamma, T mean, T shift,
                  T inverse, T* __restrict dx) {
  const auto sums = sum_run<2, T>(n.width, [=](int64_t i) {
    const T g = dy[i] * gamma[i];
    return std::array<T, 2>{g, g * ((x[i] - shift) * inverse)};
  });
  const auto count = static_cast<double>(n.width);
  const T of_mean = subtracts_mean(n) ? static_cast<T>(sums[0] / count) : 0;
  const T of_deviation = static_cast<T>(sums[1] / count);
  for (int64_t i = 0; i < n.width; ++i) {
    dx[i] = inverse * (dy[i] * gamma[i] - of_mean - (x[i] - mean) * inverse * of_deviation);
  }
}

// Computes the gradients of x for the runs of one group in `samples` samples from `first` on, and
// adds those of gamma and beta to sums [2, channels].
template <class T>
void gradients_of_runs(const Normalization& n, const NormalizationGradients<T>& g, int64_t group,
                       int64_t first, int64_t samples, double* sums) {
  constexpr int64_t kMostRows = 64;
  const int64_t width = n.width, channels = n.channels();
  const int64_t chunk = std::clamp<int64_t>(kInCache / 2 / width / 4 * 4, 4, kMostRows);
  for (int64_t at = 0; at < samples; at += chunk) {
    const int64_t rows = std::min(chunk, samples - at);
    const int64_t run = (first + at) * n.groups + group;
    const T *const x = g.x + run * width, *const dy = g.dy + run * width;
    T shift[kMostRows], inverse[kMostRows];
    for (int64_t r = 0; r < rows; ++r) {
      const T mean = g.mean[run + r * n.groups];
      shift[r] = subtracts_mean(n) ? mean : 0;
      inverse[r] = inverse_deviation(n, g.variance[run + r * n.groups]);
      if (g.dx == nullptr) continue;
      run_gradient(n, x + r * channels, dy + r * channels, g.gamma + group * width, mean, shift[r],
                   inverse[r], g.dx + run * width + r * channels);
    }
    if (g.dgamma == nullptr && g.dbeta == nullptr) continue;
    add_columns<2>(
        rows, width,
        [&](int64_t r, int64_t c) {
          const T d = dy[r * channels + c];
          return std::array<T, 2>{d * ((x[r * channels + c] - shift[r]) * inverse[r]), d};
        },
        sums + group * width, channels);
  }
}

// ---- Groups of several steps. Sums are computed by channel, then added by group.

// The steps of a sample in blocks.
struct StepBlocks {
  explicit StepBlocks(const Normalization& n)
      : steps(n.steps),
        size(std::max<int64_t>(4, kInCache / n.channels() / 4 * 4)),
        count((steps + size - 1) / size) {}

  int64_t size_of(int64_t block) const { return std::min(size, steps - block * size); }
  // Calls fn(block) in parallel.
  template <class Fn>
  void for_each(const Fn& fn) const {
    parallel_for(count, kGrain / kInCache, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) fn(block);
    });
  }

  const int64_t steps, size, count;
};

// Computes the sums of x, and of x^2 or, for kCentered, of the squared distances from the mean of
// the channel: sums [2, channels].
template <class T>
void sum_channels(const Normalization& n, const T* x, double* sums) {
  const int64_t channels = n.channels();
  const bool centered = n.moments == Moments::kCentered;
  const StepBlocks blocks(n);
  const Scratch<double> parts(blocks.count * 2 * channels);
  blocks.for_each([&](int64_t block) {
    double* const part = parts.data() + block * 2 * channels;
    std::fill_n(part, 2 * channels, 0.0);
    const T* const from = x + block * blocks.size * channels;
    const int64_t steps = blocks.size_of(block);
    if (!centered) {
      return add_columns<2>(
          steps, channels,
          [=](int64_t r, int64_t c) {
            const T value = from[r * channels + c];
            return std::array<T, 2>{value, value * value};
          },
          part, channels);
    }
    add_columns<1>(
        steps, channels,
        [=](int64_t r, int64_t c) { return std::array<T, 1>{from[r * channels + c]}; }, part,
        channels);
    const Scratch<T> means(channels);
    T* const mean = means.data();
    for (int64_t c = 0; c < channels; ++c) {
      mean[c] = static_cast<T>(part[c] / static_cast<double>(steps));
    }
    add_columns<1>(
        steps, channels,
        [=](int64_t r, int64_t c) {
          const T distance = from[r * channels + c] - mean[c];
          return std::array<T, 1>{distance * distance};
        },
        part + channels, channels);
  });
  std::fill_n(sums, 2 * channels, 0.0);
  const int64_t added = centered ? channels : 2 * channels;
  for (int64_t block = 0; block < blocks.count; ++block) {
    const double* const part = parts.data() + block * 2 * channels;
    for (int64_t i = 0; i < added; ++i) sums[i] += part[i];
  }
  if (!centered) return;
  // The distances of the blocks are those from the means of the blocks (Chan et al. 1979).
  for (int64_t block = 0; block < blocks.count; ++block) {
    const double* const part = parts.data() + block * 2 * channels;
    const auto count = static_cast<double>(blocks.size_of(block));
    const double per_step = 1 / count, per_all = 1 / static_cast<double>(n.steps);
    for (int64_t c = 0; c < channels; ++c) {
      const double distance = part[c] * per_step - sums[c] * per_all;
      sums[channels + c] += part[channels + c] + count * (distance * distance);
    }
  }
}

// Returns the statistics of a group from those of its channels.
template <class T>
MeanAndVariance<T> statistics_of_group(const Normalization& n, const double* sums, int64_t group) {
  const auto steps = static_cast<double>(n.steps);
  const double count = steps * static_cast<double>(n.width);
  const int64_t begin = group * n.width, end = begin + n.width;
  double sum = 0, squares = 0;
  for (int64_t c = begin; c < end; ++c) {
    sum += sums[c];
    squares += sums[n.channels() + c];
  }
  if (n.moments != Moments::kCentered) return from_sums<T>(n, sum, squares, count);
  for (int64_t c = begin; c < end; ++c) {
    const double distance = sums[c] / steps - sum / count;
    squares += steps * (distance * distance);
  }
  return {static_cast<T>(sum / count), static_cast<T>(squares / count)};
}

// Normalizes one sample.
template <class T>
void normalize_steps(const Normalization& n, const T* x, const T* gamma, const T* beta, T* y,
                     T* mean, T* variance) {
  const int64_t channels = n.channels();
  const Scratch<double> sums(2 * channels);
  sum_channels(n, x, sums.data());
  const Scratch<T> constants(2 * channels);
  T *const shift = constants.data(), *const factor = shift + channels;
  for (int64_t group = 0; group < n.groups; ++group) {
    const auto [m, v] = statistics_of_group<T>(n, sums.data(), group);
    mean[group] = m;
    variance[group] = v;
    const T inverse = inverse_deviation(n, v);
    for (int64_t c = group * n.width; c < (group + 1) * n.width; ++c) {
      shift[c] = subtracts_mean(n) ? m : 0;
      factor[c] = inverse * gamma[c];
    }
  }
  const StepBlocks blocks(n);
  blocks.for_each([&](int64_t block) {
    const int64_t begin = block * blocks.size, end = begin + blocks.size_of(block);
    for (int64_t step = begin; step < end; ++step) {
      const T* const from = x + step * channels;
      T* __restrict to = y + step * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = (from[c] - shift[c]) * factor[c] + beta[c];
    }
  });
}

// Computes the gradient of x for the sample whose operands g has, and adds those of gamma and beta
// to sums [2, channels].
template <class T>
void gradient_of_steps(const Normalization& n, const NormalizationGradients<T>& g, double* sums) {
  const int64_t channels = n.channels();
  // dx = dy * of_y - (x - mean) * of_x - offset
  const Scratch<T> constants(5 * channels);
  T *const mean = constants.data(), *const shift = mean + channels, *const of_y = shift + channels,
           *const of_x = of_y + channels, *const offset = of_x + channels;
  for (int64_t c = 0; c < channels; ++c) {
    mean[c] = g.mean[c / n.width];
    shift[c] = subtracts_mean(n) ? mean[c] : 0;
  }
  const StepBlocks blocks(n);
  const Scratch<double> parts(blocks.count * 2 * channels);
  blocks.for_each([&](int64_t block) {
    double* const part = parts.data() + block * 2 * channels;
    std::fill_n(part, 2 * channels, 0.0);
    const T* const x = g.x + block * blocks.size * channels;
    const T* const dy = g.dy + block * blocks.size * channels;
    add_columns<2>(
        blocks.size_of(block), channels,
        [=](int64_t r, int64_t c) {
          const T d = dy[r * channels + c];
          return std::array<T, 2>{d * (x[r * channels + c] - shift[c]), d};
        },
        part, channels);
  });
  for (int64_t block = 1; block < blocks.count; ++block) {
    const double* const part = parts.data() + block * 2 * channels;
    for (int64_t i = 0; i < 2 * channels; ++i) parts.data()[i] += part[i];
  }
  const double *const of_gamma = parts.data(), *const of_beta = of_gamma + channels;
  const auto count = static_cast<double>(n.steps * n.width);
  for (int64_t group = 0; group < n.groups; ++group) {
    const T inverse = inverse_deviation(n, g.variance[group]);
    const int64_t begin = group * n.width, end = begin + n.width;
    double of_mean = 0, of_deviation = 0;
    for (int64_t c = begin; c < end; ++c) {
      sums[c] += of_gamma[c] * inverse;
      sums[channels + c] += of_beta[c];
      if (subtracts_mean(n)) of_mean += of_beta[c] * g.gamma[c];
      of_deviation += of_gamma[c] * inverse * g.gamma[c];
    }
    for (int64_t c = begin; c < end; ++c) {
      of_y[c] = inverse * g.gamma[c];
      of_x[c] = inverse * inverse * static_cast<T>(of_deviation / count);
      offset[c] = inverse * static_cast<T>(of_mean / count);
    }
  }
  if (g.dx == nullptr) return;
  blocks.for_each([&](int64_t block) {
    const int64_t begin = block * blocks.size, end = begin + blocks.size_of(block);
    for (int64_t step = begin; step < end; ++step) {
      const T *const x = g.x + step * channels, *const dy = g.dy + step * channels;
      T* __restrict dx = g.dx + step * channels;
      for (int64_t c = 0; c < channels; ++c) {
        dx[c] = dy[c] * of_y[c] - (x[c] - mean[c]) * of_x[c] - offset[c];
      }
    }
  });
}

// ---- Samples.

// The samples in parts, each with sums of its own for the gradients of gamma and beta.
struct SampleParts {
  explicit SampleParts(const Normalization& n)
      : samples(n.samples),
        size(std::max({(samples + kMostParts - 1) / kMostParts, 8 / n.steps,
                       kGrain / (n.steps * n.channels()), int64_t{1}})),
        count((samples + size - 1) / size) {}

  int64_t size_of(int64_t part) const { return std::min(size, samples - part * size); }

  const int64_t samples, size, count;
};

// Calls fn(i) for i < count in parallel or, if there are few, one after the other: then the loops
// inside are parallel.
template <class Fn>
void for_each_of(int64_t count, const Fn& fn) {
  const int64_t grain = count >= num_workers() ? 1 : std::max<int64_t>(count, 1);
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i);
  });
}

}  // namespace

template <class T>
void normalize(const Normalization& n, const T* x, const T* gamma, const T* beta, T* y, T* mean,
               T* variance) {
  const int64_t channels = n.channels(), of_sample = n.steps * channels;
  if (n.samples * of_sample == 0) {
    std::fill_n(mean, n.samples * n.groups, T{0});
    std::fill_n(variance, n.samples * n.groups, T{0});
    return;
  }
  const Weights<T> factors(gamma, channels, 1), offsets(beta, channels, 0);
  if (n.steps == 1) {
    return normalize_runs(n, x, factors.data(), offsets.data(), y, mean, variance);
  }
  const SampleParts parts(n);
  for_each_of(parts.count, [&](int64_t part) {
    const int64_t first = part * parts.size;
    for (int64_t s = first; s < first + parts.size_of(part); ++s) {
      normalize_steps(n, x + s * of_sample, factors.data(), offsets.data(), y + s * of_sample,
                      mean + s * n.groups, variance + s * n.groups);
    }
  });
}

template <class T>
void normalize_gradient(const Normalization& n, const NormalizationGradients<T>& g) {
  const int64_t channels = n.channels(), of_sample = n.steps * channels;
  if (n.samples * of_sample == 0) {
    if (g.dgamma != nullptr) std::fill_n(g.dgamma, channels, T{0});
    if (g.dbeta != nullptr) std::fill_n(g.dbeta, channels, T{0});
    return;
  }
  const Weights<T> factors(g.gamma, channels, 1);
  NormalizationGradients<T> all = g;
  all.gamma = factors.data();
  const SampleParts parts(n);
  const Scratch<double> sums(parts.count * 2 * channels);  // [parts, 2, channels]
  std::fill_n(sums.data(), parts.count * 2 * channels, 0.0);
  if (n.steps == 1) {
    parallel_for(parts.count * n.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t part = i / n.groups;
        gradients_of_runs(n, all, i % n.groups, part * parts.size, parts.size_of(part),
                          sums.data() + part * 2 * channels);
      }
    });
  } else {
    for_each_of(parts.count, [&](int64_t part) {
      const int64_t first = part * parts.size;
      for (int64_t s = first; s < first + parts.size_of(part); ++s) {
        NormalizationGradients<T> sample = all;
        sample.x += s * of_sample;
        sample.dy += s * of_sample;
        sample.mean += s * n.groups;
        sample.variance += s * n.groups;
        if (g.dx != nullptr) sample.dx += s * of_sample;
        gradient_of_steps(n, sample, sums.data() + part * 2 * channels);
      }
    });
  }
  parallel_for(channels, kGrain / kMostParts, [&](int64_t begin, int64_t end) {
    double *const of_gamma = sums.data(), *const of_beta = of_gamma + channels;
    for (int64_t part = 1; part < parts.count; ++part) {
      const double* const more = sums.data() + part * 2 * channels;
      for (int64_t c = begin; c < end; ++c) of_gamma[c] += more[c];
      for (int64_t c = begin; c < end; ++c) of_beta[c] += more[channels + c];
    }
    for (int64_t c = begin; c < end; ++c) {
      if (g.dgamma != nullptr) g.dgamma[c] = static_cast<T>(of_gamma[c]);
      if (g.dbeta != nullptr) g.dbeta[c] = static_cast<T>(of_beta[c]);
    }
  });
}

#define KEEL_INSTANTIATE(T)                                                                \
  template void normalize(const Normalization&, const T*, const T*, const T*, T*, T*, T*); \
  template void normalize_gradient(const Normalization&, const NormalizationGradients<T>&);
KEEL_INSTANTIATE(float)
KEEL_INSTANTIATE(double)
#undef KEEL_INSTANTIATE

}  // namespace keel::kernels
