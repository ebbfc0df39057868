#include "benchmarks/support/data.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace keel::bench {
namespace {

constexpr double kExponent = 1.05;

// The density of the ranks, its integral and the inverse of the integral.
double density(double x) { return std::pow(x, -kExponent); }
double area(double x) { return (std::pow(x, 1 - kExponent) - 1) / (1 - kExponent); }
double inverse_area(double y) { return std::pow(1 + y * (1 - kExponent), 1 / (1 - kExponent)); }

}  // namespace

uint64_t Random::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

int64_t Random::below(int64_t bound) {
  return std::min(bound - 1, static_cast<int64_t>(unit() * static_cast<double>(bound)));
}

RowIds::RowIds(int64_t vocabulary, Popularity popularity)
    : vocabulary_(vocabulary),
      popularity_(popularity),
      step_(std::max<int64_t>(1, 2'654'435'761 % vocabulary)),
      low_(area(1.5) - 1),
      high_(area(static_cast<double>(vocabulary) + 0.5)),
      accept_(2 - inverse_area(area(2.5) - density(2))) {
  while (std::gcd(step_, vocabulary_) != 1) ++step_;
}

// Rejection sampling from the hull of the integral (Hoermann and Derflinger 1996), which needs no
// table of the vocabulary.
int64_t RowIds::rank(Random& random) const {
  for (;;) {
    const double u = high_ + random.unit() * (low_ - high_);
    const double x = inverse_area(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, static_cast<double>(vocabulary_));
    if (k - x <= accept_ || u >= area(k + 0.5) - density(k)) return static_cast<int64_t>(k) - 1;
  }
}

int64_t RowIds::operator()(Random& random) const {
  if (popularity_ == Popularity::kUniform) return random.below(vocabulary_);
  // Ranks and steps are below 2^31, so their product fits.
  return rank(random) * step_ % vocabulary_;
}

BagBatch make_bags(const RowIds& rows, int64_t samples, int64_t bag, bool ragged, Random& random) {
  BagBatch out;
  out.splits.push_back(0);
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int64_t length = ragged ? random.below(2 * bag + 1) : bag;
    for (int64_t i = 0; i < length; ++i) out.ids.push_back(rows(random));
    out.splits.push_back(out.size());
  }
  return out;
}

std::vector<BagBatch> make_bag_pool(const RowIds& rows, int64_t samples, int64_t bag, bool ragged,
                                    uint64_t seed) {
  constexpr int64_t kIds = 2'000'000;
  Random random(seed);
  std::vector<BagBatch> pool(std::clamp<int64_t>(kIds / (samples * bag), 6, 400));
  for (BagBatch& batch : pool) batch = make_bags(rows, samples, bag, ragged, random);
  return pool;
}

std::vector<int64_t> criteo_table_sizes(int64_t cap) {
  std::vector<int64_t> sizes = {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                                93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                                2173,  4,    7046547,  18,      15,  286181, 105,     142572};
  for (int64_t& size : sizes) size = std::min(size, cap);
  return sizes;
}

}  // namespace keel::bench
