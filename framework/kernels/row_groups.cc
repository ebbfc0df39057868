#include "framework/kernels/row_groups.h"

#include <algorithm>
#include <bit>

#include "framework/errors.h"
#include "framework/kernels/prefetch_row.h"
#include "framework/kernels/radix_sort.h"
#include "framework/kernels/row_sum.h"

namespace keel::kernels {
namespace {

// The words of one part, behind `out`: id << bits | source.
uint64_t* write_words(const Bags& part, int bits, bool by_position, uint64_t source,
                      uint64_t* out) {
  const auto word = [bits](int64_t id, uint64_t from) {
    return static_cast<uint64_t>(id) << bits | from;
  };
  if (part.splits == nullptr || by_position) {
    const int64_t* ids = part.first_id();
    const int64_t n = part.positions();
    for (int64_t i = 0; i < n; ++i) out[i] = word(ids[i], source + static_cast<uint64_t>(i));
    return out + n;
  }
  for (int64_t s = 0; s < part.samples; ++s, ++source) {
    for (int64_t p = part.splits[s]; p < part.splits[s + 1]; ++p) {
      *out++ = word(part.ids[p], source);
    }
  }
  return out;
}

void ask_for(std::span<const RowMemory> parts, int64_t row) {
  for (const RowMemory& part : parts) {
    prefetch_row</*kToWrite=*/true>(static_cast<const char*>(part.base) + row * part.row_bytes,
                                    part.row_bytes);
  }
}

// Adds what a source has to give to a sum.
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

void RowGroups::build(std::span<const Bags> parts, bool by_position) {
  int64_t n = 0, samples = 0;
  uint64_t largest = 0;
  for (const Bags& part : parts) {
    const int64_t* ids = part.first_id();
    const int64_t count = part.positions();
    for (int64_t i = 0; i < count; ++i) largest = std::max(largest, static_cast<uint64_t>(ids[i]));
    n += count;
    samples += part.samples;
  }
  const int id_bits = std::bit_width(largest);
  source_bits_ = std::bit_width(static_cast<uint64_t>(by_position ? n : samples));
  if (id_bits + source_bits_ > 64 || n > UINT32_MAX) {
    throw ValueError("RowGroups: ", n, " positions with ids up to ", largest,
                     " are more than it can sort");
  }
  source_mask_ = (uint64_t{1} << source_bits_) - 1;
  words_.resize(n);
  spare_.resize(n);
  uint64_t* out = words_.data();
  uint64_t source = 0;
  for (const Bags& part : parts) {
    out = write_words(part, source_bits_, by_position, source, out);
    source += static_cast<uint64_t>(by_position ? part.positions() : part.samples);
  }
  sorted_ = radix_sort(words_.data(), spare_.data(), n, id_bits,
                       [this](uint64_t word) { return word >> source_bits_; });
  // Without a branch: what is no beginning is overwritten by the next one.
  starts_.resize(n + 1);
  size_t groups = 0;
  uint64_t before = ~uint64_t{0};
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t id = sorted_[i] >> source_bits_;
    starts_[groups] = static_cast<uint32_t>(i);
    groups += id != before ? 1 : 0;
    before = id;
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
                    int64_t dim, float* out, std::span<const RowMemory> parts) {
  const int64_t ahead = written_rows_ahead(dim);
  const int64_t asked = parts.empty() ? 0 : groups.size();
  with_constant_dim(dim, [&]<int64_t kDim>() {
    for (int64_t g = first; g < end; ++g) {
      if (g + ahead < asked) ask_for(parts, groups.id(g + ahead));
      RowSum<kDim, float> sum(dim, out + (g - first) * dim);
      for (int64_t e = groups.begin(g); e < groups.begin(g + 1); ++e) {
        add_source<kDim>(sources, groups.source_of(e), dim, sum);
      }
      sum.store();
    }
  });
}

void spread_row_groups(const RowGroups& groups, int64_t first, int64_t end,
                       const RowSources& sources, int64_t dim, float* out,
                       std::span<const RowMemory> parts) {
  const int64_t ahead = written_rows_ahead(dim);
  const int64_t asked = parts.empty() ? 0 : groups.positions();
  with_constant_dim(dim, [&]<int64_t kDim>() {
    for (int64_t e = first; e < end; ++e) {
      if (e + ahead < asked) ask_for(parts, groups.id_of(e + ahead));
      RowSum<kDim, float> sum(dim, out + (e - first) * dim);
      add_source<kDim>(sources, groups.source_of(e), dim, sum);
      sum.store();
    }
  });
}

}  // namespace keel::kernels
