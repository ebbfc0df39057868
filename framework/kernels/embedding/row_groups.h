// Which positions of a batch add to which row of a table, and the sums that they add.
//
// The gradient of a table is a sum over positions: position p adds gain(p) times one row of the
// gradient of the pooled activations to the row of its id. Raw pointers and sizes; ids are checked
// by the caller.
#pragma once

#include <cstdint>
#include <span>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/kernels/scratch.h>

namespace keel::kernels {

// Sources sorted by id and, of one id, in the order in which they came. What it holds keeps its
// memory from use to use.
class RowGroups {
 public:
  // Of a table of so many rows. Positions follow each other over all parts. Their source is the
  // number of their sample over all parts or, if by_position, of the position itself. ValueError if
  // ids and sources together have more than 64 bits.
  void build(std::span<const Bags> parts, int64_t rows, bool by_position);

  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }  // distinct ids
  int64_t positions() const { return starts_.back(); }
  // Ids ascend. Group g has the entries [begin(g), begin(g + 1)).
  int64_t id(int64_t g) const { return ids_[g]; }
  int64_t begin(int64_t g) const { return starts_[g]; }
  int64_t source_of(int64_t entry) const { return sources_[entry]; }
  // The first group whose id is not less.
  int64_t lower_bound(int64_t id) const;

 private:
  // each(fn) calls fn(id, source) of one position after the other.
  template <class Each>
  void count(std::span<const Bags> parts, int64_t rows, const Each& each);
  template <class Word, class Each>
  void sort(int id_bits, int source_bits, const Each& each);

  ScratchVector<int64_t> ids_;            // by group
  ScratchVector<uint32_t> starts_ = {0};  // by group, and the end of the last
  ScratchVector<uint32_t> sources_;       // by entry
};

// What a source adds: gains[source] * rows[row_of[source]].
struct RowSources {
  const float* rows = nullptr;       // [n, dim]
  const uint32_t* row_of = nullptr;  // null: row `source`
  const float* gains = nullptr;      // null: ones
};

// Rows that follow each other from `base` on, or none.
struct RowMemory {
  const void* base = nullptr;
  int64_t row_bytes = 0;

  const void* row(int64_t i) const { return static_cast<const char*>(base) + i * row_bytes; }
};

// out[g - first] = the sum over the entries of group g, in their order, for g in [first, end).
// `table`, values and slots, is about to be written at the groups' ids: its rows are asked for
// before the turn of their group comes.
void sum_row_groups(const RowGroups& groups, int64_t first, int64_t end, const RowSources& sources,
                    int64_t dim, float* out, const RowMemory& table = {});
// out[e - first] = what entry e adds, for e in [first, end).
void spread_row_groups(const RowGroups& groups, int64_t first, int64_t end,
                       const RowSources& sources, int64_t dim, float* out);

}  // namespace keel::kernels
