#include <keel/layers/serving/steps/internal/lookup_step.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/prefetch.h>
#include <keel/framework/internal/int8_table.h>
#include <keel/framework/kernels/embedding/abs_max_rows.h>
#include <keel/framework/kernels/embedding/row_sum.h>
#include <keel/framework/kernels/update_rules/finite.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>

namespace keel {
namespace {

// Dense lookups process the batch in blocks of rows; the rows of the next block are prefetched
// meanwhile.
constexpr int64_t kBlock = 16;
constexpr int64_t kIdsAhead = 16;
constexpr int64_t kMostPrefetchedBytes = 512;  // the hardware prefetcher follows longer rows
constexpr int64_t kLine = 64;

void prefetch_row(const char* row, int64_t bytes) {
  for (int64_t at = 0; at < std::min(bytes, kMostPrefetchedBytes); at += kLine) {
    keel::prefetch(row + at);
  }
}

bool is_invalid_key(int64_t key) { return key < 0; }
bool is_invalid_key(const std::string& key) { return key.empty(); }

// The row numbers of keys, which are found when they are read.
template <class Key>
struct RowsOfKeys {
  const Key* data;
  const ServingKeys* keys;
  bool drops_invalid;
  bool is_invalid(int64_t i) const { return is_invalid_key(data[i]); }
  int64_t operator[](int64_t i) const {
    if (drops_invalid && is_invalid(i)) return -1;
    if constexpr (std::is_same_v<Key, std::string>) {
      return keys->row(data[i]);
    } else {
      return keys->row(static_cast<int64_t>(data[i]));
    }
  }
};

// Calls fn(ids) with row numbers: a pointer to int32_t or int64_t, or RowsOfKeys.
template <class Fn>
void visit_ids(const PlanLookup& lookup, const TensorView& ids, const Fn& fn) {
  const auto visit = [&]<class Id>(const Id* data) {
    if (lookup.keys != nullptr) {
      fn(RowsOfKeys<Id>{data, lookup.keys.get(), lookup.invalid_keys == InvalidKeys::kDrop});
    } else if constexpr (!std::is_same_v<Id, std::string>) {
      fn(data);
    }
  };
  if (ids.dtype == DType::kString) {
    visit(static_cast<const std::string*>(ids.data));
  } else if (ids.dtype == DType::kInt32) {
    visit(static_cast<const int32_t*>(ids.data));
  } else {
    visit(static_cast<const int64_t*>(ids.data));
  }
}

// The rows of a table in memory.
struct RowBytes {
  enum class Kind { kFloats, kInt8Row, kAbsMaxRow };
  const char* base;
  int64_t bytes;  // size of a row
  Kind kind;
  const float* scales = nullptr;  // for kAbsMaxRow
};

RowBytes rows_of(const PlanLookup& lookup) {
  if (lookup.int8) {
    return {.base = lookup.int8->data(),
            .bytes = lookup.int8->row_bytes(),
            .kind = RowBytes::Kind::kInt8Row};
  }
  if (lookup.scales) {
    return {.base = reinterpret_cast<const char*>(lookup.table.data<int8_t>().data()),
            .bytes = lookup.table.dim(1),
            .kind = RowBytes::Kind::kAbsMaxRow,
            .scales = lookup.scales.data<float>().data()};
  }
  return {.base = reinterpret_cast<const char*>(lookup.table.data<float>().data()),
          .bytes = lookup.table.dim(1) * static_cast<int64_t>(sizeof(float)),
          .kind = RowBytes::Kind::kFloats};
}

// A dense lookup resolved for one call.
struct Dense {
  const void* ids;  // ids of the first row
  DType dtype;
  const ServingKeys* keys;  // null for row numbers
  bool drops_invalid;       // of keys
  int64_t* found;           // the rows of the keys of two blocks
  RowBytes table;
  int64_t dim, per_row;
  PlanRows out;

  int64_t number(int64_t i) const {
    return dtype == DType::kInt32 ? static_cast<const int32_t*>(ids)[i]
                                  : static_cast<const int64_t*>(ids)[i];
  }
  // Calls fn(key) with the i-th key.
  template <class Fn>
  auto with_key(int64_t i, const Fn& fn) const {
    if (dtype == DType::kString) return fn(static_cast<const std::string*>(ids)[i]);
    return fn(number(i));
  }
  // Returns the row of the i-th key. A key that is left out reads the row of zeros.
  int64_t row_of_key(int64_t i) const {
    return std::max<int64_t>(0, with_key(i, [this](const auto& key) {
                               return drops_invalid && is_invalid_key(key) ? 0 : keys->row(key);
                             }));
  }
  // The blocks alternate between the two halves of `found`.
  int64_t* found_in(int64_t block) const { return found + block % 2 * kBlock * per_row; }
};

Dense dense_of(const LookupStep::Entry& entry, const PlanCall& call, int64_t* found) {
  const TensorView& ids = call.view(entry.lookup.ids);
  const int64_t first = call.begin * entry.per_row;
  const int64_t bytes = ids.dtype == DType::kString ? sizeof(std::string) : size_of(ids.dtype);
  return {.ids = static_cast<const char*>(ids.data) + first * bytes,
          .dtype = ids.dtype,
          .keys = entry.lookup.keys.get(),
          .drops_invalid = entry.lookup.invalid_keys == InvalidKeys::kDrop,
          .found = found,
          .table = rows_of(entry.lookup),
          .dim = entry.lookup.table.dim(1),
          .per_row = entry.per_row,
          .out = call[entry.out]};
}

// Loads the slots of keys, which find_rows() reads.
void prefetch_keys(const Dense& d, int64_t begin, int64_t end) {
  if (d.keys == nullptr) return;
  for (int64_t i = begin * d.per_row; i < end * d.per_row; ++i) {
    d.with_key(i, [&](const auto& key) { d.keys->prefetch(key); });
  }
}

// Finds and prefetches the rows of one block. The rows of keys are stored, unless `to` is null.
void find_rows(const Dense& d, int64_t begin, int64_t end, int64_t* to) {
  const int64_t first = begin * d.per_row, last = end * d.per_row;
  if (d.keys != nullptr) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = d.row_of_key(i);
      prefetch_row(d.table.base + row * d.table.bytes, d.table.bytes);
      if (to != nullptr) *to++ = row;
    }
    return;
  }
  for (int64_t i = first; i < last; ++i) {
    const int64_t row = d.number(i);
    prefetch_row(d.table.base + row * d.table.bytes, d.table.bytes);
    if (d.table.scales != nullptr) __builtin_prefetch(d.table.scales + row);
  }
}

// Copies the rows of one block. `found` are the rows of keys.
void copy_rows(const Dense& d, int64_t begin, int64_t end, const int64_t* found) {
  kernels::with_constant_dim(d.dim, [&]<int64_t kDim>() {
    const int64_t dim = kDim > 0 ? kDim : d.dim;
    for (int64_t r = begin; r < end; ++r) {
      float* to = d.out[r];
      for (int64_t j = 0; j < d.per_row; ++j, to += dim) {
        const int64_t id = d.keys == nullptr ? d.number(r * d.per_row + j) : *found++;
        const char* const row = d.table.base + id * d.table.bytes;
        switch (d.table.kind) {
          case RowBytes::Kind::kFloats:
            std::memcpy(to, row, dim * sizeof(float));
            break;
          case RowBytes::Kind::kInt8Row:
            kernels::to_floats(kernels::Int8Row(row), dim, to);
            break;
          case RowBytes::Kind::kAbsMaxRow:
            kernels::to_floats(kernels::AbsMaxRow{.codes = reinterpret_cast<const int8_t*>(row),
                                                  .scale = d.table.scales[id]},
                               dim, to);
            break;
        }
      }
    }
  });
}

// Iterates over the row boundaries of a tensor. Dense tensors have `per_row` values in each row.
class RowEnds {
 public:
  RowEnds(const TensorView& view, int64_t per_row, int64_t first_row)
      : view_(view), per_row_(per_row), row_(first_row) {
    if (view.layout == Layout::kDense) {
      at_ = first_row * per_row;
      return;
    }
    if (view.layout == Layout::kRagged) {
      at_ = view.row_splits[first_row];
      return;
    }
    int64_t count = view.values;
    while (count > 0) {  // binary search for the first position whose row is >= first_row
      const int64_t half = count / 2;
      if (view.indices[2 * (at_ + half)] < first_row) {
        at_ += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
  }
  int64_t begin() const { return at_; }
  // Advances by one row and returns its end.
  int64_t next() {
    if (view_.layout == Layout::kDense) return at_ += per_row_;
    if (view_.layout == Layout::kRagged) return at_ = view_.row_splits[++row_];
    while (at_ < view_.values && view_.indices[2 * at_] == row_) ++at_;
    ++row_;
    return at_;
  }

 private:
  const TensorView& view_;
  const int64_t per_row_;
  int64_t row_, at_ = 0;
};

// Returns the position of value p in its row, which starts at value `begin`.
int64_t step_of(const TensorView& view, int64_t p, int64_t begin) {
  return view.layout == Layout::kSparse ? view.indices[2 * p + 1] : p - begin;
}

template <int64_t kDim, bool kInt8, class Ids>
void pool_rows(const LookupStep::Entry& entry, const Ids& ids, const PlanCall& call) {
  constexpr bool kNumbers = std::is_pointer_v<Ids>;
  const PlanLookup& lookup = entry.lookup;
  const TensorView& view = call.view(lookup.ids);
  const float* const weights =
      lookup.weights ? static_cast<const float*>(call.view(*lookup.weights).data) : nullptr;
  const RowBytes table = rows_of(lookup);
  const int64_t dim = kDim > 0 ? kDim : lookup.table.dim(1);
  const auto combiner = lookup.combiner;
  const PlanRows out = call[entry.out];
  RowEnds ends(view, entry.per_row, call.begin);
  int64_t p = ends.begin();
  for (int64_t r = 0; r < call.rows; ++r) {
    kernels::RowSum<kDim, float> sum(dim, out[r]);
    double total = 0;
    int64_t count = 0;
    const int64_t stop = ends.next();
    const int64_t end =
        lookup.max_row_length == kUnknown ? stop : std::min(stop, p + lookup.max_row_length);
    for (; p < end; ++p) {
      if constexpr (kNumbers) {
        if (p + kIdsAhead < view.values && ids[p + kIdsAhead] >= 0) {
          prefetch_row(table.base + static_cast<int64_t>(ids[p + kIdsAhead]) * table.bytes,
                       table.bytes);
        }
      }
      const auto id = static_cast<int64_t>(ids[p]);
      const float w = weights == nullptr ? 1.0F : weights[p];
      if (id < 0) continue;
      if (lookup.prunes && combiner != kernels::Combiner::kSum && w <= 0) continue;
      ++count;
      total += combiner == kernels::Combiner::kMean ? w : static_cast<double>(w) * w;
      const auto row = [&] {
        const char* const at = table.base + id * table.bytes;
        if constexpr (kInt8) {
          return kernels::Int8Row(at);
        } else {
          return reinterpret_cast<const float*>(at);
        }
      }();
      if (weights == nullptr) {
        sum.template add<false>(row, 1);
      } else {
        sum.template add<true>(row, w);
      }
    }
    // The mean of one unweighted id is the row itself, so dividing is skipped.
    if (combiner != kernels::Combiner::kSum && (weights != nullptr || count != 1)) {
      sum.divide(
          static_cast<float>(combiner == kernels::Combiner::kMean ? total : std::sqrt(total)));
    }
    sum.store();
    p = stop;
  }
}

// Writes the maximum of each element over the ids of a row, or zeros for a row without ids.
template <bool kInt8, class Ids>
void max_rows(const LookupStep::Entry& entry, const Ids& ids, const PlanCall& call) {
  const PlanLookup& lookup = entry.lookup;
  const TensorView& view = call.view(lookup.ids);
  const RowBytes table = rows_of(lookup);
  const int64_t dim = lookup.table.dim(1);
  const PlanRows out = call[entry.out];
  RowEnds ends(view, entry.per_row, call.begin);
  int64_t p = ends.begin();
  for (int64_t r = 0; r < call.rows; ++r) {
    float* const most = out[r];
    std::fill_n(most, dim, 0.0F);
    bool is_first = true;
    for (const int64_t end = ends.next(); p < end; ++p) {
      const auto id = static_cast<int64_t>(ids[p]);
      if (id < 0) continue;
      const auto take = [&](const auto& row) {
        for (int64_t j = 0; j < dim; ++j) {
          const float x = row[j];
          // A NaN is greater than every number, as in the layer's lookup.
          const bool greater = x > most[j] || (std::isnan(x) && !std::isnan(most[j]));
          most[j] = is_first || greater ? x : most[j];
        }
      };
      const char* const at = table.base + id * table.bytes;
      if constexpr (kInt8) {
        take(kernels::Int8Row(at));
      } else {
        take(reinterpret_cast<const float*>(at));
      }
      is_first = false;
    }
  }
}

// Writes the rows of sequences. Sums of one row give the bits of the layer's lookup, which copies
// the rows of a table with the combiner "max".
template <int64_t kDim, bool kInt8, class Ids>
void write_sequences(const LookupStep::Entry& entry, const Ids& ids, const PlanCall& call) {
  const PlanLookup& lookup = entry.lookup;
  const TensorView& view = call.view(lookup.ids);
  const float* const weights =
      lookup.weights ? static_cast<const float*>(call.view(*lookup.weights).data) : nullptr;
  const RowBytes table = rows_of(lookup);
  const int64_t dim = kDim > 0 ? kDim : lookup.table.dim(1);
  const PlanRows out = call[entry.out];
  RowEnds ends(view, entry.per_row, call.begin);
  int64_t p = ends.begin();
  for (int64_t r = 0; r < call.rows; ++r) {
    std::fill_n(out[r], lookup.sequence_length * dim, 0.0F);
    const int64_t begin = p;
    for (const int64_t end = ends.next(); p < end; ++p) {
      const int64_t step = step_of(view, p, begin);
      if (step >= lookup.sequence_length) continue;
      const auto id = static_cast<int64_t>(ids[p]);
      if (id < 0) continue;
      float* const to = out[r] + step * dim;
      if constexpr (!kInt8) {
        if (lookup.takes_max) {
          std::memcpy(to, table.base + id * table.bytes, dim * sizeof(float));
          continue;
        }
      }
      kernels::RowSum<kDim, float> sum(dim, to);
      const auto row = [&] {
        const char* const at = table.base + id * table.bytes;
        if constexpr (kInt8) {
          return kernels::Int8Row(at);
        } else {
          return reinterpret_cast<const float*>(at);
        }
      }();
      if (weights == nullptr) {
        sum.template add<false>(row, 1);
      } else {
        sum.template add<true>(row, weights[p]);
      }
      sum.store();
    }
  }
}

// Throws InvalidIdError for the first negative id or empty string.
template <class Key>
void reject_invalid_keys(const PlanLookup& lookup, const RowsOfKeys<Key>& keys, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (!keys.is_invalid(i)) continue;
    const auto id = [&] {
      if constexpr (std::is_same_v<Key, std::string>) {
        return std::string("empty");
      } else {
        return absl::StrCat(keys.data[i]);
      }
    }();
    throw InvalidIdError(lookup.caller, ": the id at position ", i, " is ", id,
                         ", which IdPolicy::error() rejects");
  }
}

// Returns the number of negative ids and empty strings. Those beyond the length of a sequence do
// not count.
template <class Key>
int64_t invalid_keys(const LookupStep::Entry& entry, const RowsOfKeys<Key>& keys,
                     const TensorView& view) {
  const int64_t length = entry.lookup.sequence_length;
  int64_t out = 0;
  if (length == 0) {
    for (int64_t i = 0; i < view.values; ++i) out += keys.is_invalid(i) ? 1 : 0;
    return out;
  }
  RowEnds ends(view, entry.per_row, 0);
  for (int64_t r = 0, p = 0; r < view.rows; ++r) {
    const int64_t begin = p;
    for (const int64_t end = ends.next(); p < end; ++p) {
      out += keys.is_invalid(p) && step_of(view, p, begin) < length ? 1 : 0;
    }
  }
  return out;
}

// Throws ValueError for the first id that is out of range. Negative ids are valid if they are
// pruned. The first loop has no branches, so that it can be vectorized.
template <class Id>
void check_ids(const PlanLookup& lookup, const Id* ids, int64_t n) {
  const int64_t limit = lookup.table.dim(0);
  bool invalid = false;
  for (int64_t i = 0; i < n; ++i) {
    const auto id = static_cast<int64_t>(ids[i]);
    invalid |= id >= limit || (id < 0 && !lookup.prunes);
  }
  if (!invalid) return;
  for (int64_t i = 0; i < n; ++i) {
    const auto id = static_cast<int64_t>(ids[i]);
    if (id < limit && (id >= 0 || lookup.prunes)) continue;
    throw InvalidIdError(lookup.caller, ": id ", id, " at position ", i,
                         " is outside the table of ", limit, " rows");
  }
}

void check_weights(const PlanLookup& lookup, const TensorView& ids, const TensorView& weights) {
  bool same =
      weights.layout == ids.layout && weights.values == ids.values && weights.rows == ids.rows;
  if (same && ids.layout == Layout::kRagged) {
    same = std::equal(ids.row_splits, ids.row_splits + ids.rows + 1, weights.row_splits);
  } else if (same) {
    same = std::equal(ids.indices, ids.indices + 2 * ids.values, weights.indices);
  }
  if (!same) throw ValueError(lookup.caller, ": weights must have the same positions as the ids");
  if (!lookup.finite_weights) return;
  const std::span values(static_cast<const float*>(weights.data),
                         static_cast<size_t>(weights.values));
  const int64_t bad = kernels::first_not_finite(values);
  if (bad < 0) return;
  throw ValueError(lookup.caller, ": the weight at position ", bad, " is ", values[bad],
                   "; weights must be finite");
}

// Returns the number of rows of keys that a dense lookup stores: those of two blocks.
int64_t found_rows(const LookupStep::Entry& entry) {
  return entry.lookup.keys == nullptr ? 0 : 2 * kBlock * entry.per_row;
}

}  // namespace

LookupStep::LookupStep(std::vector<Entry> entries, bool checks_when_run)
    : checks_when_run_(checks_when_run) {
  for (Entry& entry : entries) {
    const bool is_pooled = entry.layout != Layout::kDense || entry.lookup.pools_dense;
    (is_pooled ? pooled_ : dense_).push_back(std::move(entry));
  }
}

int64_t LookupStep::scratch() const {
  auto bytes = static_cast<int64_t>(dense_.size() * sizeof(Dense));
  for (const Entry& entry : dense_) bytes += found_rows(entry) * sizeof(int64_t);
  return bytes / static_cast<int64_t>(sizeof(float));
}

void LookupStep::check(const PlanCall& call) const {
  if (!checks_when_run_) check_entries(call);
}

void LookupStep::check_entries(const PlanCall& call) const {
  for (const auto* entries : {&dense_, &pooled_}) {
    for (const Entry& entry : *entries) {
      const TensorView& ids = call.view(entry.lookup.ids);
      if (entry.layout == Layout::kDense && ids.values != call.batch * entry.per_row) {
        throw RuntimeError(entry.lookup.caller, ": requires ", entry.per_row, " ids for each of ",
                           call.batch, " rows, received ", ids.shape);
      }
      if (entry.lookup.weights) check_weights(entry.lookup, ids, call.view(*entry.lookup.weights));
      if (entry.lookup.keys != nullptr && entry.lookup.invalid_keys != InvalidKeys::kReject)
        continue;
      visit_ids(entry.lookup, ids, [&]<class Ids>(const Ids& values) {
        if constexpr (std::is_pointer_v<Ids>) {
          check_ids(entry.lookup, values, ids.values);
        } else {
          reject_invalid_keys(entry.lookup, values, ids.values);
        }
      });
    }
  }
  // Ids are counted after all entries have been checked.
  for (const auto* entries : {&dense_, &pooled_}) {
    for (const Entry& entry : *entries) {
      if (!entry.lookup.count_dropped) continue;
      const TensorView& ids = call.view(entry.lookup.ids);
      visit_ids(entry.lookup, ids, [&]<class Ids>(const Ids& values) {
        if constexpr (!std::is_pointer_v<Ids>) {
          const int64_t dropped = invalid_keys(entry, values, ids);
          if (dropped > 0) entry.lookup.count_dropped(dropped);
        }
      });
    }
  }
}

void LookupStep::prefetch(const PlanCall& call) const {
  if (checks_when_run_) return;
  for (const Entry& entry : dense_) {
    if (entry.lookup.keys == nullptr) continue;
    prefetch_keys(dense_of(entry, call, nullptr), 0, std::min(call.rows, 2 * kBlock));
  }
  for (const Entry& entry : dense_) {
    find_rows(dense_of(entry, call, nullptr), 0, std::min(call.rows, kBlock), nullptr);
  }
}

void LookupStep::run(const PlanCall& call) const {
  if (checks_when_run_) check_entries(call);
  auto* const dense = reinterpret_cast<Dense*>(call.scratch);
  const auto count = static_cast<int64_t>(dense_.size());
  auto* found = reinterpret_cast<int64_t*>(dense + count);
  for (int64_t i = 0; i < count; ++i) {
    dense[i] = dense_of(dense_[i], call, found);
    if (dense[i].keys == nullptr) continue;
    found += found_rows(dense_[i]);
    find_rows(dense[i], 0, std::min(kBlock, call.rows), dense[i].found);
  }
  for (int64_t begin = 0, block = 0; begin < call.rows; begin += kBlock, ++block) {
    const int64_t end = std::min(begin + kBlock, call.rows);
    const int64_t next = std::min(end + kBlock, call.rows);
    const int64_t after_next = std::min(next + kBlock, call.rows);
    // The rows of the next block are prefetched while those of this block are copied.
    for (int64_t i = 0; i < count; ++i) {
      const Dense& d = dense[i];
      prefetch_keys(d, next, after_next);
      find_rows(d, end, next, d.found_in(block + 1));
      copy_rows(d, begin, end, d.found_in(block));
    }
  }
  for (const Entry& entry : pooled_) {
    visit_ids(entry.lookup, call.view(entry.lookup.ids), [&](const auto& ids) {
      if (entry.lookup.takes_max && entry.lookup.sequence_length == 0) {
        entry.lookup.int8 ? max_rows<true>(entry, ids, call) : max_rows<false>(entry, ids, call);
        return;
      }
      kernels::with_constant_dim(entry.lookup.table.dim(1), [&]<int64_t kDim>() {
        if (entry.lookup.sequence_length > 0) {
          entry.lookup.int8 ? write_sequences<kDim, true>(entry, ids, call)
                            : write_sequences<kDim, false>(entry, ids, call);
          return;
        }
        entry.lookup.int8 ? pool_rows<kDim, true>(entry, ids, call)
                          : pool_rows<kDim, false>(entry, ids, call);
      });
    });
  }
}

std::string LookupStep::what() const {
  return absl::StrCat("lookups in ", dense_.size() + pooled_.size(), " tables");
}

}  // namespace keel
