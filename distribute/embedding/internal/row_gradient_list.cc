#include <keel/distribute/embedding/internal/row_gradient_list.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include <keel/framework/kernels/embedding/row_sum.h>

namespace keel::distribute {
namespace {

constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();

}  // namespace

void RowGradientList::clear() {
  ends_.clear();
  ids_.clear();
  values_.clear();
}

void RowGradientList::restart(RowGradientList& before) {
  values_.swap(before.values_);
  clear();
}

void RowGradientList::append(const kernels::RowGroups& groups, int64_t first, int64_t end,
                             const kernels::RowSources& sources, int64_t dim, bool each_entry,
                             int64_t shift) {
  const int64_t begin_entry = groups.begin(first);
  const int64_t end_entry = groups.begin(end);
  const int64_t n = each_entry ? end_entry - begin_entry : end - first;
  const size_t at = values_.size();
  values_.resize(at + n * dim);
  if (each_entry) {
    for (int64_t g = first; g < end; ++g) {
      ids_.insert(ids_.end(), groups.begin(g + 1) - groups.begin(g), groups.id(g) + shift);
    }
    kernels::spread_row_groups(groups, begin_entry, end_entry, sources, dim, values_.data() + at);
  } else {
    for (int64_t g = first; g < end; ++g) ids_.push_back(groups.id(g) + shift);
    kernels::sum_row_groups(groups, first, end, sources, dim, values_.data() + at);
  }
}

void RowGradientList::end_table() { ends_.push_back(std::ssize(ids_)); }

void RowGradientList::assign(std::span<const int64_t> counts_and_ids, std::span<const float> values,
                             size_t tables) {
  clear();
  int64_t end = 0;
  for (const int64_t count : counts_and_ids.first(tables)) ends_.push_back(end += count);
  const auto ids = counts_and_ids.subspan(tables);
  ids_.assign(ids.begin(), ids.end());
  values_.assign(values.begin(), values.end());
}

void RowGradientList::renumber(size_t table, std::span<const int64_t> dims,
                               FunctionRef<int64_t(int64_t)> number) {
  const int64_t dim = dims[table];
  const Table before = this->table(table, dims);
  std::vector<std::pair<int64_t, int64_t>> rows;  // new id, position
  for (size_t i = 0; i < before.ids.size(); ++i) {
    const int64_t id = number(before.ids[i]);
    if (id != 0) rows.emplace_back(id, static_cast<int64_t>(i));
  }
  // The positions keep the order of several rows of one id.
  std::ranges::sort(rows);
  std::vector<int64_t> ids;
  std::vector<float> values;
  for (const auto& [id, position] : rows) {
    ids.push_back(id);
    values.insert(values.end(), before.values + position * dim,
                  before.values + (position + 1) * dim);
  }
  const int64_t begin = table == 0 ? 0 : ends_[table - 1];
  const int64_t first_value = before.values - values_.data();
  const int64_t dropped = std::ssize(before.ids) - std::ssize(ids);
  std::ranges::copy(ids, ids_.begin() + begin);
  std::ranges::copy(values, values_.begin() + first_value);
  if (dropped == 0) return;
  const int64_t end = begin + std::ssize(ids), end_value = first_value + std::ssize(values);
  ids_.erase(ids_.begin() + end, ids_.begin() + end + dropped);
  values_.erase(values_.begin() + end_value, values_.begin() + end_value + dropped * dim);
  for (size_t t = table; t < ends_.size(); ++t) ends_[t] -= dropped;
}

RowGradientList::Table RowGradientList::table(size_t index, std::span<const int64_t> dims) const {
  const float* values = values_.data();
  int64_t begin = 0;
  for (size_t t = 0; t < index; ++t) {
    values += (ends_[t] - begin) * dims[t];
    begin = ends_[t];
  }
  return {.ids = ids(index), .values = values};
}

std::span<const int64_t> RowGradientList::ids(size_t table) const {
  const int64_t begin = table == 0 ? 0 : ends_[table - 1];
  return std::span(ids_).subspan(begin, ends_[table] - begin);
}

std::span<const int64_t> RowGradientList::counts_and_ids(size_t tables) {
  message_.clear();
  for (size_t t = 0; t < tables; ++t) message_.push_back(ends_[t] - (t == 0 ? 0 : ends_[t - 1]));
  message_.insert(message_.end(), ids_.begin(), ids_.end());
  return message_;
}

KWayMerge::KWayMerge(std::span<const RowGradientList::Table> lists, int64_t begin, int64_t end,
                     const TableShard& table, bool sum)
    : table_(table),
      dim_(table.dim()),
      ahead_(std::max<int64_t>(1, kernels::written_rows_ahead(dim_) / std::ssize(lists))),
      sum_(sum) {
  for (const RowGradientList::Table& list : lists) {
    const auto first = std::ranges::lower_bound(list.ids, begin) - list.ids.begin();
    const auto last = std::ranges::lower_bound(list.ids, end) - list.ids.begin();
    heads_.push_back({.id = list.ids.data() + first,
                      .end = list.ids.data() + last,
                      .row = list.values + first * dim_});
    for (auto i = first; i < std::min(last, first + ahead_); ++i)
      table_.prefetch_to_write(list.ids[i]);
  }
  const size_t leaves = std::bit_ceil(lists.size());
  std::vector<uint64_t> winners(2 * leaves, kEnd);
  for (size_t list = 0; list < lists.size(); ++list) winners[leaves + list] = key(list);
  losers_.resize(leaves);
  for (size_t node = leaves - 1; node > 0; --node) {
    std::tie(winners[node], losers_[node]) = std::minmax(winners[2 * node], winners[2 * node + 1]);
  }
  winner_ = winners[1];
}

uint64_t KWayMerge::key(size_t list) const {
  const Head& head = heads_[list];
  return head.id == head.end ? kEnd : static_cast<uint64_t>(*head.id) << kListBits | list;
}

int64_t KWayMerge::next_id() const {
  return winner_ == kEnd ? std::numeric_limits<int64_t>::max()
                         : static_cast<int64_t>(winner_ >> kListBits);
}

const float* KWayMerge::take() {
  const size_t list = winner_ & ((uint64_t{1} << kListBits) - 1);
  Head& head = heads_[list];
  if (head.end - head.id > ahead_) table_.prefetch_to_write(head.id[ahead_]);
  const float* const row = head.row;
  ++head.id;
  head.row += dim_;
  winner_ = key(list);
  // Replay the comparisons on the path from the leaf of this list to the root.
  for (size_t node = (losers_.size() + list) / 2; node > 0; node /= 2) {
    const uint64_t other = losers_[node];
    losers_[node] = std::max(other, winner_);
    winner_ = std::min(other, winner_);
  }
  return row;
}

int64_t KWayMerge::next(int64_t most, int64_t* ids, float* values) {
  int64_t n = 0;
  kernels::with_constant_dim(dim_, [&]<int64_t kDim>() {
    for (; n < most && winner_ != kEnd; ++n) {
      ids[n] = next_id();
      float* const out = values + n * dim_;
      if (sum_) {
        kernels::RowSum<kDim, float> sum(dim_, out);
        while (next_id() == ids[n]) sum.template add<false>(take(), 1.0F);
        sum.store();
      } else {  // the other rows of this id follow as separate rows
        std::copy_n(take(), dim_, out);
      }
    }
  });
  return n;
}

}  // namespace keel::distribute
