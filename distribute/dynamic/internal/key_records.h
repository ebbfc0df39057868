// KeyRecords: keys with their counts and times, by position.
//
// The times of most tables differ by less than 2^24 (births) and 2^32 (last occurrences). They are
// therefore stored relative to a base; the record of an int64 key has 19 bytes. If times are
// further apart, they move to an array of whole numbers.
//
// A position is free, has a key, or is leaving: its key has been removed, but is still stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <keel/distribute/dynamic/internal/chunked_array.h>
#include <keel/distribute/dynamic/internal/reserved_array.h>
#include <keel/framework/base/internal/prefetch.h>

namespace keel::distribute {

// What a directory knows about a key.
struct KeyUse {
  int64_t last = 0;    // time of the last occurrence, >= 0
  int64_t born = 0;    // time when the key was added, >= 0
  uint32_t count = 0;  // occurrences; saturates

  // Counts occurrences at a time.
  void add(int64_t occurrences, int64_t now) {
    constexpr auto kMost = static_cast<int64_t>(std::numeric_limits<uint32_t>::max());
    count = static_cast<uint32_t>(occurrences < kMost - count ? count + occurrences : kMost);
    last = now;
  }
};

// Key is int64_t or std::string. Any number of threads may call the const members while no thread
// changes the records.
template <class Key>
class KeyRecords {
 public:
  // The key by value, or by reference if it is a string.
  using KeyResult = std::conditional_t<std::is_same_v<Key, int64_t>, int64_t, const Key&>;

  KeyResult key(int64_t position) const { return records_[position].key; }
  bool holds(int64_t position) const { return records_[position].use.last < kLeaving; }
  // Inline also where its caller is large: selections call it for all keys.
  [[gnu::always_inline]] KeyUse use(int64_t position) const {
    const Use& use = records_[position].use;
    if (is_wide_) {
      const Times& times = times_[position];
      return {.last = times.last, .born = times.born, .count = use.count};
    }
    return {.last = base_ + use.last,
            .born = base_ + (use.born[0] | use.born[1] << 8 | use.born[2] << 16),
            .count = use.count};
  }
  // Replaces what is known about a key. Throws std::bad_alloc, without a change, if times need more
  // memory.
  void set_use(int64_t position, const KeyUse& use) {
    if (!is_wide_ && !fits(use, base_)) fit(use);
    store(position, use);
  }
  // Counts occurrences of a key at a time.
  void add_use(int64_t position, int64_t occurrences, int64_t now) {
    KeyUse changed = use(position);
    changed.add(occurrences, now);
    set_use(position, changed);
  }
  void halve_count(int64_t position) {
    const uint32_t count = records_[position].use.count;
    records_[position].use.count = count / 2;
  }

  // Sets a free position, which must be below limit(), to a key. The functions below never throw.
  void assign(int64_t position, Key key) { records_[position].key = std::move(key); }
  // Removes the key at a position, which keeps it until release(). Its count and times are lost.
  void leave(int64_t position) { records_[position].use.last = kLeaving; }
  // Makes a position free. free_link() then returns `link`.
  void release(int64_t position, uint32_t link) {
    records_[position].key = Key();
    records_[position].use = {.count = link, .last = kFree, .born = {}};
  }
  uint32_t free_link(int64_t position) const { return records_[position].use.count; }

  // Allocates the positions [0, limit). If it throws std::bad_alloc, nothing has changed.
  void grow(int64_t limit) {
    records_.grow(limit);
    if (is_wide_) times_.grow(limit);
    for (; limit_ < limit; ++limit_) records_[limit_].use.last = kFree;
  }
  void clear() { *this = KeyRecords(); }
  void prefetch(int64_t position) const {
    const auto* const record = reinterpret_cast<const char*>(&records_[position]);
    keel::prefetch(record);
    keel::prefetch(record + sizeof(Record) - 1);
  }
  int64_t bytes() const { return records_.bytes() + times_.bytes(); }

 private:
  // In place of a time: the position has no key.
  static constexpr uint32_t kFree = 0xffffffff, kLeaving = kFree - 1;
  static constexpr int64_t kMostBorn = (int64_t{1} << 24) - 1, kMostLast = int64_t{kLeaving} - 1;
  static constexpr int64_t kBaseMargin = int64_t{1} << 22;

  struct [[gnu::packed]] Use {
    uint32_t count;
    uint32_t last;  // relative to base_, or kFree or kLeaving
    uint8_t born[3];
  };
  struct [[gnu::packed]] PackedRecord {
    int64_t key;
    Use use;
  };
  struct StringRecord {
    std::string key;
    Use use;
  };
  using Record = std::conditional_t<std::is_same_v<Key, int64_t>, PackedRecord, StringRecord>;
  struct Times {
    int64_t last, born;
  };

  static bool fits(const KeyUse& use, int64_t base) {
    return use.last >= base && use.last - base <= kMostLast && use.born >= base &&
           use.born - base <= kMostBorn;
  }
  void store(int64_t position, const KeyUse& use) {
    Use& to = records_[position].use;
    to.count = use.count;
    if (is_wide_) {
      to.last = 0;
      times_[position] = {.last = use.last, .born = use.born};
      return;
    }
    const auto born = static_cast<uint32_t>(use.born - base_);
    to.last = static_cast<uint32_t>(use.last - base_);
    for (int byte = 0; byte < 3; ++byte) to.born[byte] = static_cast<uint8_t>(born >> 8 * byte);
  }
  // Moves the base, or widens the times, so that they and those of `use` can be stored.
  void fit(const KeyUse& use) {
    int64_t least = std::min(use.last, use.born);
    for (int64_t i = 0; i < limit_; ++i) {
      if (!holds(i)) continue;
      const KeyUse of = this->use(i);
      least = std::min({least, of.last, of.born});
    }
    // The margin bounds the number of moves when times arrive in descending order.
    const int64_t base = std::max<int64_t>(0, least - kBaseMargin);
    bool fit_all = fits(use, base);
    for (int64_t i = 0; i < limit_ && fit_all; ++i) {
      fit_all = !holds(i) || fits(this->use(i), base);
    }
    if (!fit_all) times_.grow(limit_);
    for (int64_t i = 0; i < limit_; ++i) {
      if (!holds(i)) continue;
      const KeyUse of = this->use(i);
      if (fit_all) {
        store_at(i, of, base);
      } else {
        times_[i] = {.last = of.last, .born = of.born};
      }
    }
    is_wide_ = !fit_all;
    base_ = base;
  }
  void store_at(int64_t position, const KeyUse& use, int64_t base) {
    const int64_t before = base_;
    base_ = base;
    store(position, use);
    base_ = before;
  }

  std::conditional_t<std::is_same_v<Key, int64_t>, ReservedArray<Record>, ChunkedArray<Record>>
      records_;
  int64_t limit_ = 0;
  int64_t base_ = 0;
  bool is_wide_ = false;
  ReservedArray<Times> times_;  // if is_wide_
};

}  // namespace keel::distribute
