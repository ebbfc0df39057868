#include "distribute/embedding/row_list.h"

#include <algorithm>
#include <limits>

namespace keel::distribute {

void RowList::clear() {
  ends_.clear();
  ids_.clear();
  values_.clear();
}

void RowList::restart(RowList& before) {
  values_.swap(before.values_);
  clear();
}

void RowList::append(const kernels::RowGroups& groups, int64_t first, int64_t end,
                     const kernels::RowSources& sources, int64_t dim, bool each_entry) {
  const int64_t begin_entry = groups.begin(first);
  const int64_t end_entry = groups.begin(end);
  const int64_t n = each_entry ? end_entry - begin_entry : end - first;
  const size_t at = values_.size();
  values_.resize(at + n * dim);
  if (each_entry) {
    for (int64_t g = first; g < end; ++g) {
      ids_.insert(ids_.end(), groups.begin(g + 1) - groups.begin(g), groups.id(g));
    }
    kernels::spread_row_groups(groups, begin_entry, end_entry, sources, dim, values_.data() + at);
  } else {
    for (int64_t g = first; g < end; ++g) ids_.push_back(groups.id(g));
    kernels::sum_row_groups(groups, first, end, sources, dim, values_.data() + at);
  }
}

void RowList::end_table() { ends_.push_back(std::ssize(ids_)); }

void RowList::assign(std::span<const int64_t> counts_and_ids, std::span<const float> values,
                     size_t tables) {
  clear();
  int64_t end = 0;
  for (const int64_t count : counts_and_ids.first(tables)) ends_.push_back(end += count);
  const auto ids = counts_and_ids.subspan(tables);
  ids_.assign(ids.begin(), ids.end());
  values_.assign(values.begin(), values.end());
}

RowList::Table RowList::table(size_t index, std::span<const int64_t> dims) const {
  const float* values = values_.data();
  int64_t begin = 0;
  for (size_t t = 0; t < index; ++t) {
    values += (ends_[t] - begin) * dims[t];
    begin = ends_[t];
  }
  return {.ids = ids(index), .values = values};
}

std::span<const int64_t> RowList::ids(size_t table) const {
  const int64_t begin = table == 0 ? 0 : ends_[table - 1];
  return std::span(ids_).subspan(begin, ends_[table] - begin);
}

std::span<const int64_t> RowList::counts_and_ids(size_t tables) {
  message_.clear();
  for (size_t t = 0; t < tables; ++t) message_.push_back(ends_[t] - (t == 0 ? 0 : ends_[t - 1]));
  message_.insert(message_.end(), ids_.begin(), ids_.end());
  return message_;
}

RowMerge::RowMerge(std::span<const RowList::Table> lists, int64_t begin, int64_t end,
                   const HeldTable& table, bool sum)
    : table_(table), dim_(table.dim()), sum_(sum) {
  for (const RowList::Table& list : lists) {
    const auto first = std::ranges::lower_bound(list.ids, begin) - list.ids.begin();
    const auto last = std::ranges::lower_bound(list.ids, end) - list.ids.begin();
    heads_.push_back({.id = list.ids.data() + first,
                      .end = list.ids.data() + last,
                      .row = list.values + first * dim_});
  }
}

int64_t RowMerge::next_id() const {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const Head& head : heads_) {
    if (head.id != head.end) least = std::min(least, *head.id);
  }
  return least;
}

int64_t RowMerge::next(int64_t most, int64_t* ids, float* values) {
  const int64_t ahead = kernels::written_rows_ahead(dim_);
  int64_t n = 0;
  while (n < most) {
    const int64_t id = next_id();
    if (id == std::numeric_limits<int64_t>::max()) break;
    ids[n] = id;
    float* __restrict out = values + n * dim_;
    if (sum_) std::fill_n(out, dim_, 0.0F);
    for (Head& head : heads_) {
      if (head.id == head.end || *head.id != id) continue;
      const float* __restrict row = head.row;
      if (head.end - head.id > ahead) table_.ask_to_write(head.id[ahead]);
      ++head.id;
      head.row += dim_;
      if (sum_) {
        for (int64_t i = 0; i < dim_; ++i) out[i] += row[i];
      } else {
        std::copy_n(row, dim_, out);
        break;  // the others have their turn in the next rows
      }
    }
    ++n;
  }
  return n;
}

}  // namespace keel::distribute
