// ExpiryQueue: finds the keys that have not occurred for some time without reading all keys.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/internal/chunked_array.h>

namespace keel::distribute {

// Positions of keys, ordered by a time at or before the last occurrence of the key. An occurrence
// does not touch the queue. A key is read only when its time has expired; if it has occurred since,
// it is queued again. Each key is therefore read once per ttl.
class ExpiryQueue {
 public:
  // Queues a position. Times must not be kNone.
  void add(uint32_t position, int64_t time) {
    queued_.grow(position + size_t{1});
    queued_[position] = {time};
    positions_[time].push_back(position);
  }
  // Removes and returns the positions whose last occurrence was at `limit` or before.
  // `last_of(position)` returns that time, or kNone if the position has no key any more.
  template <class LastOf>
  std::vector<uint32_t> take_expired(int64_t limit, const LastOf& last_of) {
    std::vector<uint32_t> out;
    while (!positions_.empty() && positions_.begin()->first <= limit) {
      const auto [time, positions] = std::move(*positions_.begin());
      positions_.erase(positions_.begin());
      for (const uint32_t position : positions) {
        // The position may have been removed and queued again.
        if (queued_[position].time != time) continue;
        queued_[position] = {};
        const int64_t last = last_of(position);
        if (last == kNone) continue;
        if (last <= limit) {
          out.push_back(position);
        } else {
          add(position, last);
        }
      }
    }
    return out;
  }
  void clear() {
    positions_.clear();
    queued_.clear();
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

 private:
  struct Queued {
    int64_t time = kNone;
  };

  std::map<int64_t, std::vector<uint32_t>> positions_;  // by time
  ChunkedArray<Queued> queued_;  // by position: the time at which it is queued
};

}  // namespace keel::distribute
