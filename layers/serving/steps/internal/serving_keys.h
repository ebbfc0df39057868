// ServingKeys: the ids of a table for unbounded ids in a serving plan.
#pragma once

#include <cstdint>
#include <string>

#include <keel/distribute/dynamic/dynamic_rows.h>
#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/dynamic/internal/key_index.h>
#include <keel/framework/tensor.h>

namespace keel {

// A copy of a table at the time of construction, which training does not change. Immutable, so that
// any number of threads may call row(), which takes no lock and allocates nothing.
class ServingKeys {
 public:
  ServingKeys(const DynamicTableState& state, const DynamicVocabulary& options);

  // Returns the rows, float32 [n, dim]: a row of zeros, the fallback rows, the rows of the ids.
  const Tensor& table() const { return table_; }
  bool has_strings() const { return options_.key == KeyType::kString; }
  // Returns the row that an id reads, or -1 if it is left out (NotAdmitted::ignore()).
  int64_t row(int64_t key) const { return row_of(key); }
  int64_t row(const std::string& key) const { return row_of(key); }
  // row() takes two dependent accesses to memory, of the index and of the ids. prefetch_index()
  // loads the former; some ids later, prefetch_id() loads the latter and returns the row that the
  // id probably reads.
  void prefetch_index(int64_t key) const { index_.prefetch(distribute::key_hash(key)); }
  void prefetch_index(const std::string& key) const { index_.prefetch(distribute::key_hash(key)); }
  int64_t prefetch_id(int64_t key) const { return prefetch_id_of(key); }
  int64_t prefetch_id(const std::string& key) const { return prefetch_id_of(key); }

 private:
  template <class Key>
  int64_t row_of(const Key& key) const;
  template <class Key>
  int64_t prefetch_id_of(const Key& key) const;

  const DynamicVocabulary options_;
  const Tensor keys_;
  const int64_t first_row_;  // of ids
  Tensor table_;
  distribute::KeyIndex index_;
};

}  // namespace keel
