#include <keel/framework/kernels/embedding/unique.h>

#include <algorithm>
#include <bit>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/kernels/embedding/radix_sort.h>

namespace keel::kernels {
namespace {

// An id and its position in one word, if they fit: half the memory to move.
struct Packed {
  uint64_t word;
  uint64_t key(int position_bits) const { return word >> position_bits; }
  int64_t position(int position_bits) const {
    return static_cast<int64_t>(word & ((uint64_t{1} << position_bits) - 1));
  }
  static Packed make(int64_t id, int64_t position, int position_bits) {
    return {static_cast<uint64_t>(id) << position_bits | static_cast<uint64_t>(position)};
  }
};

// An id and its position that do not fit in one word.
struct Pair {
  uint64_t id;
  int64_t at;
  uint64_t key(int) const { return id; }
  int64_t position(int) const { return at; }
  static Pair make(int64_t id, int64_t position, int) {
    return {static_cast<uint64_t>(id), position};
  }
};

template <class Item>
void group(std::span<const int64_t> ids, int key_bits, int position_bits, GroupedIds& out) {
  const size_t n = ids.size();
  Scratch<Item> memory(static_cast<int64_t>(2 * n));
  const auto each = [&](const auto& fn) {
    for (size_t i = 0; i < n; ++i) fn(Item::make(ids[i], static_cast<int64_t>(i), position_bits));
  };
  const Item* const items = radix_sort(memory.data(), memory.data() + n, n, key_bits, each,
                                       [&](const Item& item) { return item.key(position_bits); });
  size_t groups = 0;
  for (size_t i = 0; i < n; ++i) {
    const uint64_t key = items[i].key(position_bits);
    if (i == 0 || key != items[i - 1].key(position_bits)) {
      out.distinct[groups] = static_cast<int64_t>(key);
      out.starts[groups++] = static_cast<int64_t>(i);
    }
    out.positions[i] = items[i].position(position_bits);
  }
  out.distinct.resize(groups);
  out.starts.resize(groups + 1);
  out.starts[groups] = static_cast<int64_t>(n);
}

template <class T>
void sum_rows(const GroupedIds& groups, const T* values, int64_t dim, T* out) {
  const Bags bags = {.ids = groups.positions.data(),
                     .splits = groups.starts.data(),
                     .samples = static_cast<int64_t>(groups.distinct.size())};
  pooled_gather(values, dim, bags, Combiner::kSum, out);
}

}  // namespace

void group_ids(std::span<const int64_t> ids, GroupedIds& out) {
  const size_t n = ids.size();
  out.distinct.resize(n);
  out.starts.resize(n + 1);
  out.positions.resize(n);
  const uint64_t largest = n == 0 ? 0 : static_cast<uint64_t>(std::ranges::max(ids));
  const int key_bits = std::bit_width(largest);
  const int position_bits = std::bit_width(n);
  if (key_bits + position_bits <= 64) {
    group<Packed>(ids, key_bits, position_bits, out);
  } else {
    group<Pair>(ids, key_bits, position_bits, out);
  }
}

void sum_groups(const GroupedIds& groups, const float* values, int64_t dim, float* out) {
  sum_rows(groups, values, dim, out);
}

void sum_groups(const GroupedIds& groups, const double* values, int64_t dim, double* out) {
  sum_rows(groups, values, dim, out);
}

}  // namespace keel::kernels
