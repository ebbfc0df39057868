// ExpiryQueue: finds the keys that have not occurred for some time without reading all keys.
#pragma once

#include <algorithm>
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
  // Queues a position. Times must not be kNone. If it throws std::bad_alloc, the queue is
  // unchanged.
  void add(uint32_t position, int64_t time) {
    reserve(position, time);
    queued_[position] = {time};
    positions_[time].push_back(position);
  }
  // Allocates the memory that the next add() with these arguments takes, which then does not throw.
  void reserve(uint32_t position, int64_t time) {
    queued_.grow(position + size_t{1});
    std::vector<uint32_t>& of_time = positions_[time];
    if (of_time.size() == of_time.capacity())
      of_time.reserve(std::max<size_t>(4, 2 * of_time.size()));
  }
  // Removes and returns the positions whose last occurrence was at `limit` or before.
  // `last_of(position)` returns that time, or kNone if the position has no key any more.
  // If it throws std::bad_alloc, no position is lost.
  template <class LastOf>
  std::vector<uint32_t> take_expired(int64_t limit, const LastOf& last_of) {
    size_t remaining = 0;
    for (auto node = positions_.begin(); node != positions_.end() && node->first <= limit; ++node) {
      std::erase_if(node->second, [&, time = node->first](uint32_t position) {
        // The position may have been removed and queued again.
        if (queued_[position].time != time) return true;
        const int64_t last = last_of(position);
        if (last > limit) add(position, last);
        if (last == kNone) queued_[position] = {};
        return last > limit || last == kNone;
      });
      remaining += node->second.size();
    }
    std::vector<uint32_t> out;
    out.reserve(remaining);
    while (!positions_.empty() && positions_.begin()->first <= limit) {
      const auto node = positions_.begin();
      for (const uint32_t position : node->second) {
        if (queued_[position].time != node->first) continue;
        queued_[position] = {};
        out.push_back(position);
      }
      positions_.erase(node);
    }
    return out;
  }
  void clear() {
    positions_.clear();
    queued_.clear();
  }

  int64_t bytes() const {
    // A node of the map has three pointers and a color besides its value.
    constexpr size_t kNode = sizeof(std::pair<const int64_t, std::vector<uint32_t>>) + 32;
    size_t lists = 0;
    for (const auto& [time, positions] : positions_) {
      lists += kNode + positions.capacity() * sizeof(uint32_t);
    }
    return queued_.bytes() + static_cast<int64_t>(lists);
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
