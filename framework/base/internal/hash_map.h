// HashMap, HashSet: hash tables that stay as they are when memory for an element is not to be had.
//
// The tables of Abseil are in no usable state after a failed allocation, and end the program when
// they are destroyed. Elements stand in a vector, in the order in which they were inserted; the
// table holds their positions.
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

template <class Key, class Value>
class HashMap {
 public:
  using Entry = std::pair<Key, Value>;

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

  bool contains(const Key& key) const { return find(key) != nullptr; }
  // Null if there is no such key.
  const Value* find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[slot_of(key, hash_of(key))];
    return slot.entry == kNone ? nullptr : &entries_[slot.entry].second;
  }
  Value* find(const Key& key) {
    return const_cast<Value*>(static_cast<const HashMap&>(*this).find(key));
  }

  // The value of the key, made of `value` if there was none; and whether it was made. Pointers to
  // values last until the next one is made.
  std::pair<Value*, bool> insert(const Key& key, Value value = {}) {
    reserve(size() + 1);
    const uint64_t hash = hash_of(key);
    Slot& slot = slots_[slot_of(key, hash)];
    if (slot.entry != kNone) return {&entries_[slot.entry].second, false};
    entries_.emplace_back(key, std::move(value));
    slot = {.tag = tag_of(hash), .entry = static_cast<uint32_t>(entries_.size() - 1)};
    return {&entries_.back().second, true};
  }
  Value& operator[](const Key& key) { return *insert(key).first; }

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
  void clear() {
    entries_.clear();
    slots_.clear();
  }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  struct Slot {
    uint32_t tag = 0;  // of the hash, so that most other keys are not looked at
    uint32_t entry = kNone;
  };

  static uint64_t hash_of(const Key& key) {
    const uint64_t hash = std::hash<Key>()(key) * 0x9E3779B97F4A7C15;
    return hash ^ hash >> 32;
  }
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  size_t mask() const { return slots_.size() - 1; }

  // Where the key is, or else where it goes.
  size_t slot_of(const Key& key, uint64_t hash) const {
    size_t at = hash & mask();
    while (slots_[at].entry != kNone &&
           (slots_[at].tag != tag_of(hash) || entries_[slots_[at].entry].first != key)) {
      at = (at + 1) & mask();
    }
    return at;
  }

  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // a power of two, at most two thirds of them taken
};

template <class Key>
class HashSet {
 public:
  bool contains(const Key& key) const { return map_.contains(key); }
  // Whether it was not there before.
  bool insert(const Key& key) { return map_.insert(key).second; }
  void clear() { map_.clear(); }

 private:
  struct Nothing {};
  HashMap<Key, Nothing> map_;
};

}  // namespace keel
