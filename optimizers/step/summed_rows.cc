#include <keel/optimizers/step/summed_rows.h>

#include <algorithm>
#include <bit>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/embedding/unique.h>
#include <keel/framework/kernels/update_rules/row_regularization.h>
#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel {

namespace {

using distribute::OutgoingRows;
using distribute::OwnedRows;

// Rows of one id, in the order of the ranks that sent them.
struct Summands {
  float* rows;
  const float* ranks;
  std::span<const int64_t> positions;
  int64_t dim;

  float* row(size_t i) const { return rows + positions[i] * dim; }
  float rank(size_t i) const { return ranks[positions[i]]; }
};

// Adds the rows at positions [first, end), which come from ranks [begin, begin + ranks), into the
// first of them. The additions form a balanced tree over the ranks, like those of reduce_scatter; a
// rank without the row counts as zero, which does not change a sum.
void add_up(const Summands& all, size_t first, size_t end, int64_t begin, int64_t ranks) {
  if (end - first < 2) return;
  const auto half = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(ranks - 1)));
  size_t middle = first;
  while (middle < end && all.rank(middle) < static_cast<float>(begin + half)) ++middle;
  add_up(all, first, middle, begin, half);
  add_up(all, middle, end, begin + half, ranks - half);
  if (middle == first || middle == end) return;
  float* const to = all.row(first);
  const float* const from = all.row(middle);
  for (int64_t d = 0; d < all.dim; ++d) to[d] += from[d];
}

OwnedRows tree_sums(OwnedRows& rows, const std::vector<float>& ranks, int64_t ranks_of_all,
                    int64_t dim) {
  kernels::GroupedIds groups;
  kernels::group_ids(rows.ids, groups);
  OwnedRows out;
  out.values.resize(groups.distinct.size() * dim);
  const Summands all = {rows.values.data(), ranks.data(), groups.positions, dim};
  for (size_t g = 0; g < groups.distinct.size(); ++g) {
    add_up(all, groups.starts[g], groups.starts[g + 1], 0, ranks_of_all);
    std::copy_n(all.row(groups.starts[g]), dim, out.values.data() + g * dim);
  }
  out.ids.assign(groups.distinct.begin(), groups.distinct.end());
  return out;
}

}  // namespace

template <class T>
SummedRows<T> sum_by_id(const IndexedSlices& slices, int64_t dim) {
  kernels::GroupedIds groups;
  kernels::group_ids(slices.ids.data<int64_t>(), groups);
  SummedRows<T> out;
  out.values.resize(groups.distinct.size() * dim);
  kernels::sum_groups(groups, slices.values.data<T>().data(), dim, out.values.data());
  out.ids = std::move(groups.distinct);
  return out;
}

template <class T>
void unscale(const StepPlan& plan, std::span<T> values) {
  if (plan.loss_scale == 1) return;
  for (T& x : values) x /= static_cast<T>(plan.loss_scale);
}

template <class T>
void change_rows(const VariableUpdate<T>& update, std::span<const int64_t> ids, T* values,
                 int64_t dim, LazyTable* lazy) {
  const int64_t grain = std::max<int64_t>(1, kUpdateGrain / dim);
  parallel_for(static_cast<int64_t>(ids.size()), grain, [&](int64_t begin, int64_t end) {
    VariableUpdate<T> own = update;
    const std::span<const int64_t> rows = ids.subspan(begin, end - begin);
    if (lazy != nullptr) lazy->step_rows(rows);
    own.change_rows(rows, values + begin * dim, dim);
  });
}

template <class T>
void add_to_zeros(std::span<T> values) {
  for (T& x : values) x += T{0};
}

template <class T>
void scale(std::span<T> values, double factor) {
  for (T& x : values) x *= static_cast<T>(factor);
}

template <class T>
double squares_of(std::span<const T> values) {
  return kernels::sum_of_squares(values.data(), std::ssize(values));
}

std::optional<int64_t> first_invalid_id(std::span<const int64_t> ids, int64_t rows) {
  for (const int64_t id : ids) {
    if (id < 0 || id >= rows) return id;
  }
  return {};
}

template <class T>
void limit_norms(T* values, int64_t rows, int64_t dim, double most) {
  parallel_for(rows, 256, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) kernels::limit_norm(values + row * dim, dim, most);
  });
}

std::vector<OwnedRows> sum_rows_as_dense(distribute::Communicator& communicator,
                                         std::span<const OutgoingRows> tables) {
  // For each table, sends a second one that holds the rank that sent each row.
  const auto rank = static_cast<float>(communicator.rank());
  std::vector<std::vector<float>> senders;
  for (const OutgoingRows& table : tables) senders.emplace_back(table.ids.size(), rank);
  std::vector<OutgoingRows> sent;
  for (size_t t = 0; t < tables.size(); ++t) {
    sent.push_back(tables[t]);
    sent.push_back({.ids = tables[t].ids, .values = senders[t], .dim = 1});
  }
  std::vector<OwnedRows> received = distribute::send_rows_to_owners(communicator, sent);
  std::vector<OwnedRows> out;
  for (size_t t = 0; t < tables.size(); ++t) {
    out.push_back(
        tree_sums(received[2 * t], received[2 * t + 1].values, communicator.size(), tables[t].dim));
  }
  return out;
}

template SummedRows<float> sum_by_id(const IndexedSlices&, int64_t);
template SummedRows<double> sum_by_id(const IndexedSlices&, int64_t);
template void unscale(const StepPlan&, std::span<float>);
template void unscale(const StepPlan&, std::span<double>);
template void add_to_zeros(std::span<float>);
template void add_to_zeros(std::span<double>);
template void scale(std::span<float>, double);
template void scale(std::span<double>, double);
template double squares_of(std::span<const float>);
template double squares_of(std::span<const double>);
template void limit_norms(float*, int64_t, int64_t, double);
template void limit_norms(double*, int64_t, int64_t, double);
template void change_rows(const VariableUpdate<float>&, std::span<const int64_t>, float*, int64_t,
                          LazyTable*);
template void change_rows(const VariableUpdate<double>&, std::span<const int64_t>, double*, int64_t,
                          LazyTable*);

}  // namespace keel
