// A naive implementation of a table for unbounded ids, against which KeyedTable is tested: maps of
// rows of one element, without an index, without threads.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include <keel/distribute/dynamic/dynamic_rows.h>
#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/dynamic/internal/initial_rows.h>
#include <keel/distribute/dynamic/internal/key_functions.h>

namespace keel::distribute::naive {

// The initial row of a key is the key; that of a fallback row is 0.5. Each occurrence that
// contributes to a row in an update adds 0.25.
class DynamicTable {
 public:
  struct Row {
    float value = 0;
    int64_t count = 0, last = 0, born = 0;
  };
  struct Pending {
    int64_t count = 0, last = 0;
  };
  // What an occurrence reads.
  struct Read {
    enum class Kind { kHit, kFresh, kFallback, kZero, kNothing } kind;
    int64_t fallback = 0;
    float value = 0;
  };
  using Batches = std::vector<std::vector<int64_t>>;  // by replica

  DynamicTable(const DynamicVocabulary& options, const InitialRows& draws);

  Read read(int64_t key, bool training) const;

  void evaluate(const Batches& batches);

  // Looks up and updates. Returns false, without a change, if the table is full.
  bool train(const Batches& batches);

  int64_t prune(const PruneOptions& p);
  void erase(const std::vector<int64_t>& keys);
  // Returns false, without a change, if the rows do not fit.
  bool assign(const std::map<int64_t, float>& values);

  DynamicTableStatistics statistics() const;

  const DynamicVocabulary o;

 private:
  const InitialRows& draws_;

 public:
  std::map<int64_t, Row> rows;
  std::map<int64_t, Pending> pending;
  std::vector<float> fallback;
  int64_t clock = 0;
  DynamicTableStatistics s;

 private:
  int64_t time_of_update() const { return o.clock == Clock::kUser ? clock : s.updates; }
  int64_t time_between() const {
    return o.clock == Clock::kUser ? clock : std::max<int64_t>(0, s.updates - 1);
  }

  std::array<uint8_t*, 4> cells_of(int64_t key);
  int64_t seen(int64_t key) const;
  bool qualifies(int64_t key) const;
  void evict(int64_t now, const std::set<int64_t>& admitted);
  // Removes the lowest ranks until `most` rows remain.
  void keep(int64_t most);
  void end(int64_t now);

  std::vector<uint8_t> cells_;
};

}  // namespace keel::distribute::naive
