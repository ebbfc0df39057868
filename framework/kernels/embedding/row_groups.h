// RowGroups: groups the positions of a batch by table row, and sums their contributions per row.
//
// The gradient of a table is a sum over positions: position p adds gain(p) times one row of the
// gradient of the pooled activations to the row of its id. All functions take raw pointers and
// sizes. The caller checks the ids.
#pragma once

#include <cstdint>
#include <span>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {

// The sources of a batch sorted by id; sources of the same id keep their order. An object reuses
// its memory in each build().
class RowGroups {
 public:
  // Groups the positions of `parts`, which are ids of a table of `rows` rows. Positions and samples
  // are numbered consecutively over all parts; `splits` of a part may be null. The source of a
  // position is the number of its sample or, if `by_position`, the number of the position itself.
  // Throws ValueError if an id and a source together need more than 64 bits, or if there are 2^32
  // positions or more.
  void build(std::span<const Bags> parts, int64_t rows, bool by_position);

  // The number of groups, which is the number of distinct ids.
  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
  int64_t positions() const { return starts_.back(); }
  // Ids ascend. Group g consists of the entries [begin(g), begin(g + 1)).
  int64_t id(int64_t g) const { return ids_[g]; }
  int64_t begin(int64_t g) const { return starts_[g]; }
  int64_t source_of(int64_t entry) const { return sources_[entry]; }
  // Returns the first group whose id is >= `id`, or size() if there is none.
  int64_t lower_bound(int64_t id) const;

 private:
  // each(fn) calls fn(id, source) for every position in order.
  template <class Each>
  void count(std::span<const Bags> parts, int64_t rows, const Each& each);
  template <class Word, class Each>
  void sort(int id_bits, int source_bits, const Each& each);

  ScratchVector<int64_t> ids_;            // by group
  ScratchVector<uint32_t> starts_ = {0};  // by group, plus the end of the last group
  ScratchVector<uint32_t> sources_;       // by entry
};

// The contribution of a source: gains[source] * rows[row_of[source]].
struct RowSources {
  const float* rows = nullptr;       // [n, dim]
  const uint32_t* row_of = nullptr;  // null: the row number is the source
  const float* gains = nullptr;      // null: every gain is 1
};

// Contiguous rows in memory, starting at `base`; null: no rows.
struct RowMemory {
  const void* base = nullptr;
  int64_t row_bytes = 0;

  const void* row(int64_t i) const { return static_cast<const char*>(base) + i * row_bytes; }
};

// out[g - first] = the sum of the contributions of group g's entries, in order, for g in
// [first, end). If `table` is given, the caller writes its rows (values and slots) at the groups'
// ids next; these rows are prefetched for writing some groups ahead.
void sum_row_groups(const RowGroups& groups, int64_t first, int64_t end, const RowSources& sources,
                    int64_t dim, float* out, const RowMemory& table = {});
// out[e - first] = the contribution of entry e, for e in [first, end).
void spread_row_groups(const RowGroups& groups, int64_t first, int64_t end,
                       const RowSources& sources, int64_t dim, float* out);

}  // namespace keel::kernels
