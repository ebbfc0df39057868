// Ids and batches that benchmarks pass to Keel and to the peer. All data is drawn from seeds.
#pragma once

#include <cstdint>
#include <vector>

namespace keel::bench {

class Random {  // splitmix64
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double unit();  // [0, 1)
  int64_t below(int64_t bound);

 private:
  uint64_t state_;
};

enum class Popularity { kUniform, kZipf };

// Draws rows of a table: uniformly, or by Zipf's law with exponent 1.05. The ranks are scattered
// over the table by a bijection, as a hashed vocabulary scatters them.
class RowIds {
 public:
  RowIds(int64_t vocabulary, Popularity popularity);
  int64_t operator()(Random& random) const;

 private:
  int64_t rank(Random& random) const;
  int64_t vocabulary_;
  Popularity popularity_;
  int64_t step_;
  double low_, high_, accept_;
};

// The bags of one feature of a batch: sample s has the ids [splits[s], splits[s + 1]).
struct BagBatch {
  std::vector<int64_t> ids;
  std::vector<int64_t> splits;

  int64_t samples() const { return static_cast<int64_t>(splits.size()) - 1; }
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
};
// Draws `bag` ids per sample, or if ragged a uniform number from 0 to 2 bag.
BagBatch make_bags(const RowIds& rows, int64_t samples, int64_t bag, bool ragged, Random& random);
// Returns a number of distinct batches so large that ids have left the caches when a batch is used
// again.
std::vector<BagBatch> make_bag_pool(const RowIds& rows, int64_t samples, int64_t bag, bool ragged,
                                    uint64_t seed);

// Sizes of the 26 categorical columns of the Criteo-Kaggle data, capped.
std::vector<int64_t> criteo_table_sizes(int64_t cap = 1'000'000);

}  // namespace keel::bench
