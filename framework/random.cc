#include <keel/framework/random.h>

#include <Random123/philox.h>
#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/internal/math.h>

namespace keel {
namespace {

constexpr int64_t kGrain = int64_t{1} << 16;  // numbers per block of parallel_for
constexpr size_t kChunk = 512;  // numbers per pass, so that temporaries stay in the L1 cache

// The distance between the purposes of adjacent lanes. It is so large that no lane of one purpose
// coincides with another purpose, as long as both are numbered from 0.
constexpr uint64_t kLaneDistance = 0x9E3779B97F4A7C15;

// Fills `out` with consecutive words of a stream. Word w is word w % 4 of position w / 4.
void fill_words(const RandomStream& stream, uint64_t first, std::span<uint32_t> out) {
  uint32_t* to = out.data();
  uint32_t* const end = to + out.size();
  uint64_t position = first / 4;
  if (const uint64_t skip = first % 4; skip > 0) {
    const auto words = stream.bits(position++);
    for (uint64_t i = skip; i < 4 && to < end; ++i) *to++ = words[i];
  }
  for (; end - to >= 4; to += 4) {
    const auto words = stream.bits(position++);
    std::copy_n(words.data(), 4, to);
  }
  if (to < end) std::copy_n(stream.bits(position).data(), end - to, to);
}

// Calls fn(words, out) for chunks of `out`. Element i of `out` is computed from words [kWords
// (first + i), kWords (first + i + 1)).
template <size_t kWords, class T, class Fn>
void for_each_chunk(const RandomStream& stream, std::span<T> out, uint64_t first, const Fn& fn) {
  parallel_for(std::ssize(out), kGrain, [&](int64_t begin, int64_t end) {
    std::array<uint32_t, kWords * kChunk> words;
    for (size_t at = begin; at < static_cast<size_t>(end); at += kChunk) {
      const size_t count = std::min(kChunk, end - at);
      fill_words(stream, kWords * (first + at), std::span(words).first(kWords * count));
      fn(words.data(), out.subspan(at, count));
    }
  });
}

template <size_t kTerms>
inline double polynomial(const std::array<double, kTerms>& c, double x) {
  double sum = c[kTerms - 1];
  for (size_t i = kTerms - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// The quantile of the standard normal distribution at 1/2 + q, accurate to about 1e-16, by the
// rational approximations of Wichura 1988, "Algorithm AS 241". One approximation covers |q| <=
// 0.425. Another covers the tails down to e^-25, which is less than any probability drawn here.
constexpr double kCentral = 0.425;

inline double central_quantile(double q) {
  constexpr std::array<double, 8> kA = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                        1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                        4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
  constexpr std::array<double, 8> kB = {1.0,
                                        4.2313330701600911252e+1,
                                        6.8718700749205790830e+2,
                                        5.3941960214247511077e+3,
                                        2.1213794301586595867e+4,
                                        3.9307895800092710610e+4,
                                        2.8729085735721942674e+4,
                                        5.2264952788528545610e+3};
  const double r = kCentral * kCentral - q * q;
  return q * polynomial(kA, r) / polynomial(kB, r);
}

double tail_quantile(double q) {
  constexpr std::array<double, 8> kC = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                        5.76949722146069140550e0,  3.64784832476320460504e0,
                                        1.27045825245236838258e0,  2.41780725177450611770e-1,
                                        2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr std::array<double, 8> kD = {1.0,
                                        2.05319162663775882187e0,
                                        1.67638483018380384940e0,
                                        6.89767334985100004550e-1,
                                        1.48103976427480074590e-1,
                                        1.51986665636164571966e-2,
                                        5.47593808499534494600e-4,
                                        1.05075007164441684324e-9};
  const double r = std::sqrt(-math::log(0.5 - std::abs(q))) - 1.6;
  return std::copysign(polynomial(kC, r) / polynomial(kD, r), q);
}

// Computes out[i] = mean + stddev * quantile(width * q), where q is the word's fraction in (-1/2,
// 1/2). A first loop without branches, which the compiler can vectorize, treats all values as
// central; a second loop then recomputes the tails, about one value in seven.
void quantiles(const uint32_t* words, std::span<float> out, double width, double mean,
               double stddev) {
  std::array<double, kChunk> q;
  std::array<double, kChunk> z;
  for (size_t i = 0; i < out.size(); ++i) {
    q[i] = (static_cast<int32_t>(words[i] ^ 0x80000000U) + 0.5) * (0x1p-32 * width);
    z[i] = central_quantile(q[i]);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (std::abs(q[i]) > kCentral) z[i] = tail_quantile(q[i]);
  }
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(mean + stddev * z[i]);
}

// Returns a number in [0, bound): the upper half of the product of `bound` and a 64-bit fraction.
inline int64_t scaled(const uint32_t* words, int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const uint64_t fraction = words[0] | uint64_t{words[1]} << 32;
  return static_cast<int64_t>((Wide{fraction} * static_cast<uint64_t>(bound)) >> 64);
}

// The streams of the program. Their purposes start at 1; purpose 0 is reserved for streams with an
// explicit seed.
struct ProgramStreams {
  std::mutex mutex;  // guards the other members
  uint64_t seed = 0;
  uint64_t next_purpose = 1;
};

ProgramStreams& program_streams() {
  static ProgramStreams instance;
  return instance;
}

}  // namespace

std::array<uint32_t, 4> RandomStream::bits(uint64_t index, uint64_t lane) const {
  const uint64_t place = at_lane(lane).purpose;
  const philox4x32_ctr_t counter = {
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
       static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32)}};
  const philox4x32_key_t key = {{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  const philox4x32_ctr_t out = philox4x32_R(10, counter, key);
  return {out.v[0], out.v[1], out.v[2], out.v[3]};
}

RandomStream RandomStream::at_lane(uint64_t lane) const {
  return {.seed = seed, .purpose = purpose + lane * kLaneDistance};
}

void RandomStream::uniform(std::span<float> out, uint64_t first, float low, float high) const {
  const float range = high - low;
  const float largest = std::nextafter(high, low);  // rounding must not produce `high`
  for_each_chunk<1>(*this, out, first, [=](const uint32_t* words, std::span<float> part) {
    for (size_t i = 0; i < part.size(); ++i) {
      const float fraction = static_cast<float>(static_cast<int32_t>(words[i] >> 8)) * 0x1p-24F;
      part[i] = std::min(low + range * fraction, largest);
    }
  });
}

void RandomStream::normal(std::span<float> out, uint64_t first, float mean, float stddev) const {
  for_each_chunk<1>(*this, out, first, [=](const uint32_t* words, std::span<float> part) {
    quantiles(words, part, 1.0, mean, stddev);
  });
}

void RandomStream::truncated_normal(std::span<float> out, uint64_t first, float mean,
                                    float stddev) const {
  constexpr double kWithinTwoStddev = 0.95449973610364158;
  for_each_chunk<1>(*this, out, first, [=](const uint32_t* words, std::span<float> part) {
    quantiles(words, part, kWithinTwoStddev, mean, stddev);
  });
}

void RandomStream::uniform_int(std::span<int64_t> out, uint64_t first, int64_t bound) const {
  if (bound < 1)
    throw ValueError("RandomStream.uniform_int: bound must be at least 1, received ", bound);
  for_each_chunk<2>(*this, out, first, [=](const uint32_t* words, std::span<int64_t> part) {
    for (size_t i = 0; i < part.size(); ++i) part[i] = scaled(words + 2 * i, bound);
  });
}

std::vector<int64_t> RandomStream::permutation(int64_t n) const {
  if (n < 0) throw ValueError("RandomStream.permutation: n must not be negative, received ", n);
  std::vector<int64_t> out(n);
  std::array<uint32_t, 2 * kChunk> words;
  for (int64_t i = 0; i < n; ++i) {
    const size_t at = i % kChunk;
    if (at == 0) {
      fill_words(*this, 2 * i, std::span(words).first(2 * std::min<int64_t>(kChunk, n - i)));
    }
    // Inside-out Fisher-Yates shuffle.
    const int64_t j = scaled(words.data() + 2 * at, i + 1);
    out[i] = out[j];
    out[j] = i;
  }
  return out;
}

void set_random_seed(uint64_t seed) {
  ProgramStreams& streams = program_streams();
  const std::lock_guard lock(streams.mutex);
  streams.seed = seed;
  streams.next_purpose = 1;
}

RandomStream next_random_stream(std::optional<int64_t> seed) {
  if (seed.has_value()) return {.seed = static_cast<uint64_t>(*seed), .purpose = 0};
  ProgramStreams& streams = program_streams();
  const std::lock_guard lock(streams.mutex);
  return {.seed = streams.seed, .purpose = streams.next_purpose++};
}

}  // namespace keel
