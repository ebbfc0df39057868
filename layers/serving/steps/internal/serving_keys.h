// ServingKeys: the ids of a table for unbounded ids in a serving plan.
//
// A hash table with open addressing and linear probing. A slot has an id and the number of its row,
// so that a lookup reads one cache line before the row itself. The slot of a string has its hash;
// only a slot with the same hash is compared with the string.
#pragma once

#include <cstdint>
#include <string>

#include <keel/distribute/dynamic/dynamic_rows.h>
#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/framework/base/internal/prefetch.h>
#include <keel/framework/tensor.h>

namespace keel {

// A copy of a table at the time of construction, which training does not change. Immutable, so that
// any number of threads may call row(), which takes no lock and allocates nothing.
class ServingKeys {
 public:
  ServingKeys(const DynamicTableState& state, const DynamicVocabulary& options);

  // Returns the rows, float32 [n, dim]: a row of zeros, the fallback rows, the rows of the ids.
  const Tensor& table() const { return table_; }
  const DynamicVocabulary& options() const { return options_; }
  bool has_strings() const { return options_.key == KeyType::kString; }
  // Returns the row that an id reads, or -1 if it is left out (NotAdmitted::ignore()).
  int64_t row(int64_t key) const {
    const int64_t found =
        find(distribute::key_hash(key), static_cast<uint64_t>(key), [](int64_t) { return true; });
    return found != 0 ? found : row_of_other(key);
  }
  int64_t row(const std::string& key) const {
    const uint64_t hash = distribute::key_hash(key);
    const int64_t found = find(hash, hash, [&](int64_t row) { return is_key(row, key); });
    return found != 0 ? found : row_of_other(key);
  }
  // Loads the slot that row() will read.
  void prefetch(int64_t key) const { keel::prefetch(slots_ + home(distribute::key_hash(key))); }
  void prefetch(const std::string& key) const {
    keel::prefetch(slots_ + home(distribute::key_hash(key)));
  }

 private:
  struct Slot {
    uint64_t key;  // the id, or the hash of a string
    int64_t row;   // 0 marks an unused slot: no id reads row 0
  };

  size_t home(uint64_t hash) const { return (hash & 0xffffffffU) * size_ >> 32U; }
  // Returns the row of a key, or 0.
  template <class IsKey>
  int64_t find(uint64_t hash, uint64_t key, const IsKey& is_row_of_key) const {
    for (size_t at = home(hash);; at = at + 1 == size_ ? 0 : at + 1) {
      const Slot slot = slots_[at];
      if (slot.row == 0) return 0;
      if (slot.key == key && is_row_of_key(slot.row)) return slot.row;
    }
  }
  bool is_key(int64_t row, const std::string& key) const;
  int64_t row_of_other(int64_t key) const {
    return hashed_rows_ == 0 ? row_of_others_ : 1 + distribute::fallback_row(key, hashed_rows_);
  }
  int64_t row_of_other(const std::string& key) const {
    return hashed_rows_ == 0 ? row_of_others_ : 1 + distribute::fallback_row(key, hashed_rows_);
  }
  void insert(uint64_t hash, uint64_t key, int64_t row);

  const DynamicVocabulary options_;
  const int64_t first_row_;    // of ids
  const Tensor strings_;       // the ids of a table with string ids
  int64_t row_of_others_ = 0;  // the row of ids without one
  int64_t hashed_rows_ = 0;    // with NotAdmitted::hashed(): the number of their rows
  Tensor table_;
  Tensor memory_;  // of the slots, int64 [size, 2]
  Slot* slots_ = nullptr;
  size_t size_ = 0;  // number of slots
};

}  // namespace keel
