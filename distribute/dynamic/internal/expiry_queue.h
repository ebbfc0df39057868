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
//
// The positions of a time are a list whose links are stored by position. A position is queued once
// at most, so the memory does not depend on the number of keys that come and go.
class ExpiryQueue {
 public:
  // Queues a position; removes it first if it is queued. Times must not be kNone. If it throws
  // std::bad_alloc, the queue is unchanged.
  void add(uint32_t position, int64_t time) {
    reserve(position, time);
    if (links_[position].time == time) return;
    remove(position);
    append(position, time);
  }
  // Allocates the memory that the next add() with these arguments takes, which then does not throw.
  void reserve(uint32_t position, int64_t time) {
    links_.grow(position + size_t{1});
    lists_.try_emplace(time);
  }
  // Removes a position, which need not be queued and must be below the number that have been
  // reserved. Never throws.
  void remove(uint32_t position) {
    if (links_[position].time == kNone) return;
    const auto list = lists_.find(links_[position].time);
    unlink(position, list->second);
    if (list->second.first == kEnd) lists_.erase(list);
  }
  // Removes and returns the positions whose last occurrence was at `limit` or before.
  // `last_of(position)` returns that time, or kNone if the position has no key any more.
  // If it throws std::bad_alloc, no position is lost.
  template <class LastOf>
  std::vector<uint32_t> take_expired(int64_t limit, const LastOf& last_of) {
    size_t expired = 0;
    for (auto list = lists_.begin(); list != lists_.end() && list->first <= limit; ++list) {
      for (uint32_t position = list->second.first; position != kEnd;) {
        const uint32_t next = links_[position].next;
        const int64_t last = last_of(position);
        if (last != kNone && last <= limit) {
          ++expired;
        } else {
          if (last != kNone) reserve(position, last);
          unlink(position, list->second);
          if (last != kNone) append(position, last);
        }
        position = next;
      }
    }
    std::vector<uint32_t> out;
    out.reserve(expired);
    while (!lists_.empty() && lists_.begin()->first <= limit) {
      List& list = lists_.begin()->second;
      while (list.first != kEnd) {
        out.push_back(list.first);
        unlink(list.first, list);
      }
      lists_.erase(lists_.begin());
    }
    return out;
  }
  void clear() {
    lists_.clear();
    links_.clear();
  }

  int64_t bytes() const {
    // A node of the map has three pointers and a color besides its value.
    constexpr int64_t kNode = sizeof(std::pair<const int64_t, List>) + 32;
    return links_.bytes() + kNode * static_cast<int64_t>(lists_.size());
  }

  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

 private:
  static constexpr uint32_t kEnd = 0xffffffff;
  struct List {
    uint32_t first = kEnd, last = kEnd;
  };
  struct Link {
    int64_t time = kNone;  // at which the position is queued
    uint32_t previous = kEnd, next = kEnd;
  };

  // Appends a position that is not queued to the list of a time, which must exist.
  void append(uint32_t position, int64_t time) {
    List& list = lists_.find(time)->second;
    links_[position] = {.time = time, .previous = list.last};
    (list.last == kEnd ? list.first : links_[list.last].next) = position;
    list.last = position;
  }
  void unlink(uint32_t position, List& list) {
    const Link link = std::exchange(links_[position], {});
    (link.previous == kEnd ? list.first : links_[link.previous].next) = link.next;
    (link.next == kEnd ? list.last : links_[link.next].previous) = link.previous;
  }

  std::map<int64_t, List> lists_;  // by time
  ChunkedArray<Link> links_;       // by position
};

}  // namespace keel::distribute
