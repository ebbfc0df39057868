// HashMap and HashSet: hash tables that stay valid when an allocation fails.
//
// Abseil's tables are left unusable by a failed allocation and terminate the program when they are
// destroyed. Here the elements are stored in a vector in insertion order, and the table holds their
// positions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace keel {

// A hash map that iterates over its entries in insertion order. Elements cannot be erased one by
// one. An insertion that throws std::bad_alloc leaves the map unchanged.
template <class Key, class Value>
class HashMap {
 public:
  using Entry = std::pair<Key, Value>;

  // Number of entries, and iteration over them in insertion order.
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  // Returns true if the map contains the key.
  bool contains(const Key& key) const { return find(key) != nullptr; }
  // Returns the value of the key, or null if the map does not contain it.
  const Value* find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[slot_of(key, hash_of(key))];
    return slot.entry == kNone ? nullptr : &entries_[slot.entry].second;
  }
  Value* find(const Key& key) {
    return const_cast<Value*>(static_cast<const HashMap&>(*this).find(key));
  }

  // Returns the value of the key and whether it was inserted; inserts `value` if the key is new.
  // The next insertion of a new key may invalidate pointers to values.
  std::pair<Value*, bool> insert(const Key& key, Value value = {}) {
    reserve(size() + 1);
    const uint64_t hash = hash_of(key);
    Slot& slot = slots_[slot_of(key, hash)];
    if (slot.entry != kNone) return {&entries_[slot.entry].second, false};
    entries_.emplace_back(key, std::move(value));
    slot = {.tag = tag_of(hash), .entry = static_cast<uint32_t>(entries_.size() - 1)};
    return {&entries_.back().second, true};
  }
  // Returns the value of the key; inserts a default value if the key is new.
  Value& operator[](const Key& key) { return *insert(key).first; }

  // Makes room in the table for `count` elements. Throws std::length_error for 2^32 - 1 or more.
  void reserve(size_t count) {
    if (count * 3 <= slots_.size() * 2) return;
    if (count >= kNone) throw std::length_error("HashMap: too many elements");
    HashMap larger;
    larger.slots_.resize(std::bit_ceil(std::max<size_t>(count + count / 2 + 1, 8)));
    for (size_t i = 0; i < entries_.size(); ++i) {
      const uint64_t hash = hash_of(entries_[i].first);
      size_t at = hash & larger.mask();
      while (larger.slots_[at].entry != kNone) at = (at + 1) & larger.mask();
      larger.slots_[at] = {.tag = tag_of(hash), .entry = static_cast<uint32_t>(i)};
    }
    slots_.swap(larger.slots_);
  }
  // Removes all entries.
  void clear() {
    entries_.clear();
    slots_.clear();
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Slot {
    uint32_t tag = 0;  // upper bits of the hash, which reject most other keys
    uint32_t entry = kNone;
  };

  static uint64_t hash_of(const Key& key) {
    const uint64_t hash = std::hash<Key>()(key) * 0x9E3779B97F4A7C15;
    return hash ^ hash >> 32;
  }
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t mask() const { return slots_.size() - 1; }

  // Returns the slot of the key, or the empty slot where it would be inserted (linear probing).
  size_t slot_of(const Key& key, uint64_t hash) const {
    size_t at = hash & mask();
    while (slots_[at].entry != kNone &&
           (slots_[at].tag != tag_of(hash) || entries_[slots_[at].entry].first != key)) {
      at = (at + 1) & mask();
    }
    return at;
  }

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // size is a power of two; at most two thirds are occupied
};

// A hash set with the guarantees of HashMap.
template <class Key>
class HashSet {
 public:
  bool contains(const Key& key) const { return map_.contains(key); }
  // Inserts the key and returns true if it was not in the set.
  bool insert(const Key& key) { return map_.insert(key).second; }
  void clear() { map_.clear(); }

 private:
  struct Nothing {};
  HashMap<Key, Nothing> map_;
};

}  // namespace keel
