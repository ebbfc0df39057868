#include <keel/framework/kernels/embedding/row_groups.h>

#include <algorithm>
#include <bit>
#include <utility>

#include <keel/framework/base/errors.h>
#include <keel/framework/kernels/embedding/prefetch_row.h>
#include <keel/framework/kernels/embedding/radix_sort.h>
#include <keel/framework/kernels/embedding/row_sum.h>

namespace keel::kernels {
namespace {

// Tables with at most this many rows, and at most two rows per position, are sorted by counting.
constexpr int64_t kMostCounted = 1 << 15;

// steps[i] = the number of samples that end between the positions i - 1 and i, over all parts. With
// these counts the caller needs no loop over each bag, whose unpredictable length costs branch
// mispredictions.
void count_ends(std::span<const Bags> parts, uint32_t* steps, int64_t n) {
  std::fill_n(steps, n + 1, 0);
  uint32_t* to = steps;
  for (const Bags& part : parts) {
    if (part.splits == nullptr) {
      for (int64_t s = 1; s <= part.samples; ++s) ++to[s];
    } else {
      for (int64_t s = 1; s <= part.samples; ++s) ++to[part.splits[s] - part.splits[0]];
    }
    to += part.positions();
  }
}

// Adds the contribution of a source to a sum.
template <int64_t kDim, class Sum>
void add_source(const RowSources& from, int64_t source, int64_t dim, Sum& sum) {
  const int64_t row = from.row_of == nullptr ? source : from.row_of[source];
  const float* at = from.rows + row * (kDim > 0 ? kDim : dim);
  if (from.gains == nullptr) {
    sum.template add<false>(at, 1.0F);
  } else {
    sum.template add<true>(at, from.gains[source]);
  }
}

}  // namespace

void RowGroups::build(std::span<const Bags> parts, int64_t rows, bool by_position) {
  int64_t n = 0, samples = 0;
  for (const Bags& part : parts) {
    n += part.positions();
    samples += part.samples;
  }
  const auto bits_below = [](int64_t x) {
    return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(x, 1) - 1));
  };
  const int id_bits = bits_below(rows), source_bits = bits_below(by_position ? n : samples);
  if (id_bits + source_bits > 64 || n > UINT32_MAX) {
    throw ValueError("RowGroups: cannot sort ", n, " positions in a table of ", rows,
                     " rows; use a smaller batch");
  }
  starts_.assign(1, 0);  // no groups, in case an allocation below throws
  ids_.resize(n);
  sources_.resize(n);
  const Scratch<uint32_t> steps(by_position ? 0 : n + 1);
  if (!by_position) count_ends(parts, steps.data(), n);
  const auto each = [&](const auto& fn) {
    const uint32_t* ends = steps.data();
    uint64_t source = 0, position = 0;
    for (const Bags& part : parts) {
      const int64_t* const ids = part.first_id();
      for (int64_t i = 0; i < part.positions(); ++i) {
        source = by_position ? position++ : source + *ends++;
        fn(ids[i], source);
      }
    }
  };
  if (rows <= std::min(kMostCounted, 2 * n)) {
    count(parts, rows, each);
  } else if (id_bits + source_bits <= 32) {
    sort<uint32_t>(id_bits, source_bits, each);
  } else {
    sort<uint64_t>(id_bits, source_bits, each);
  }
}

template <class Each>
void RowGroups::count(std::span<const Bags> parts, int64_t rows, const Each& each) {
  const Scratch<uint32_t> places(rows);
  starts_.resize(ids_.size() + 1);
  std::fill_n(places.data(), rows, 0);
  for (const Bags& part : parts) {
    const int64_t* const ids = part.first_id();
    for (int64_t i = 0; i < part.positions(); ++i) ++places.data()[ids[i]];
  }
  size_t groups = 0;
  uint32_t begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    // The counts become the places where the entries of each row begin.
    const uint32_t positions = std::exchange(places.data()[row], begin);
    if (positions == 0) continue;
    starts_[groups] = begin;
    ids_[groups++] = row;
    begin += positions;
  }
  starts_.resize(groups + 1);
  starts_[groups] = begin;
  each([&](int64_t id, uint64_t source) {
    sources_[places.data()[id]++] = static_cast<uint32_t>(source);
  });
}

template <class Word, class Each>
void RowGroups::sort(int id_bits, int source_bits, const Each& each) {
  const size_t n = ids_.size();
  // An id and its source share one word. Words of 32 bits, if both fit, halve the memory to move.
  const Scratch<Word> words(static_cast<int64_t>(2 * n));
  starts_.resize(n + 1);
  const auto each_word = [&](const auto& fn) {
    each([&](int64_t id, uint64_t source) {
      fn(static_cast<Word>(static_cast<uint64_t>(id) << source_bits | source));
    });
  };
  const auto id_of = [source_bits](Word word) {
    return static_cast<uint64_t>(word) >> source_bits;
  };
  const Word* const sorted =
      radix_sort(words.data(), words.data() + n, n, id_bits, each_word, id_of);
  // Without a branch: an entry that does not begin a group is overwritten by the next one.
  const uint64_t mask = (uint64_t{1} << source_bits) - 1;
  size_t groups = 0;
  uint64_t before = ~uint64_t{0};
  for (size_t e = 0; e < n; ++e) {
    const uint64_t row = id_of(sorted[e]);
    sources_[e] = static_cast<uint32_t>(sorted[e] & mask);
    starts_[groups] = static_cast<uint32_t>(e);
    ids_[groups] = static_cast<int64_t>(row);
    groups += row != before ? 1 : 0;
    before = row;
  }
  starts_.resize(groups + 1);
  starts_[groups] = static_cast<uint32_t>(n);
}

int64_t RowGroups::lower_bound(int64_t id_) const {
  int64_t first = 0, count = size();
  while (count > 0) {
    const int64_t half = count / 2;
    if (id(first + half) < id_) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

void sum_row_groups(const RowGroups& groups, int64_t first, int64_t end, const RowSources& sources,
                    int64_t dim, float* out, const RowMemory& table) {
  const int64_t ahead = written_rows_ahead(dim);
  const int64_t prefetch_end = table.base == nullptr ? 0 : groups.size();
  with_constant_dim(dim, [&]<int64_t kDim>() {
    for (int64_t g = first; g < end; ++g) {
      if (g + ahead < prefetch_end)
        prefetch_row_to_write(table.row(groups.id(g + ahead)), table.row_bytes);
      RowSum<kDim, float> sum(dim, out + (g - first) * dim);
      for (int64_t e = groups.begin(g); e < groups.begin(g + 1); ++e) {
        add_source<kDim>(sources, groups.source_of(e), dim, sum);
      }
      sum.store();
    }
  });
}

void spread_row_groups(const RowGroups& groups, int64_t first, int64_t end,
                       const RowSources& sources, int64_t dim, float* out) {
  with_constant_dim(dim, [&]<int64_t kDim>() {
    for (int64_t e = first; e < end; ++e) {
      RowSum<kDim, float> sum(dim, out + (e - first) * dim);
      add_source<kDim>(sources, groups.source_of(e), dim, sum);
      sum.store();
    }
  });
}

}  // namespace keel::kernels
