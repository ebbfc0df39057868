// The part of RowUpdater that clips gradients by norm.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <keel/distribute/embedding/internal/row_updater.h>
#include <keel/distribute/internal/placement.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/update_rules/sum_of_squares.h>

namespace keel::distribute {
namespace {

constexpr int64_t kGroupsPerPart = 1024;  // does not depend on the number of workers
constexpr int64_t kRowsOfTurn = 16;

// Returns the factor for a gradient whose squares have this sum. NaN and infinity are not clipped
// away: all gradients become NaN, as with the optimizers of variables.
double clip_factor(double squares, double most) {
  if (!std::isfinite(squares)) return std::numeric_limits<double>::quiet_NaN();
  return most / std::max(std::sqrt(squares), most);
}

}  // namespace

// Sums the squares of the gradient of a table whose rows this replica updates directly.
template <class Sum>
Sum RowUpdater::squares_of_groups(size_t table) const {
  const kernels::RowGroups& groups = gradients_[table].groups();
  const int64_t dim = tables_.dims()[table], first = first_group(table);
  const int64_t parts = (groups.size() - first + kGroupsPerPart - 1) / kGroupsPerPart;
  std::vector<Sum> sums(parts);
  parallel_for(parts, 1, [&](int64_t begin, int64_t last) {
    std::vector<float> values(kRowsOfTurn * dim);
    for (int64_t part = begin; part < last; ++part) {
      const int64_t end = std::min(first + (part + 1) * kGroupsPerPart, groups.size());
      for (int64_t g = first + part * kGroupsPerPart; g < end; g += kRowsOfTurn) {
        const int64_t stop = std::min(g + kRowsOfTurn, end);
        kernels::sum_row_groups(groups, g, stop, gradients_[table].sources(), dim, values.data(),
                                tables_.shard(table).memory());
        for (int64_t row = 0; row < stop - g; ++row) {
          sums[part] += kernels::sum_of_squares(values.data() + row * dim, dim);
        }
      }
    }
  });
  Sum out{};
  for (const Sum& sum : sums) out += sum;
  return out;
}

// Sums the squares of this replica's share of a table's gradient.
template <class Sum>
Sum RowUpdater::squares_of_share(size_t table, const Communicator& communicator) const {
  const std::vector<RowGradientList::Table> lists = lists_of(table);
  auto [first, end] = share_of_rows(table, communicator);
  // All processes update the fallback rows of a table for unbounded ids; one counts them.
  if (tables_.keyed(table) != nullptr && communicator.placement().process > 0) {
    first = std::max(first, tables_.keyed(table)->first_key_row());
    end = std::max(first, end);
  }
  KWayMerge merge(lists, first, end, tables_.shard(table), true);
  const int64_t dim = tables_.dims()[table];
  int64_t id = 0;
  std::vector<float> row(dim);
  Sum out{};
  while (merge.next(1, &id, row.data()) > 0) out += kernels::sum_of_squares(row.data(), dim);
  return out;
}

// Sums the squares of this replica's part of a table's gradient.
template <class Sum>
Sum RowUpdater::squares_of(size_t table, const Communicator& communicator) const {
  return applies_directly(table, communicator) ? squares_of_groups<Sum>(table)
                                               : squares_of_share<Sum>(table, communicator);
}

void RowUpdater::clip_by_norm(Communicator& communicator) {
  scales_.clear();
  const auto clips = [this](size_t t) {
    return tables_.is_updated(t) && tables_[t].update.clips_by_norm();
  };
  bool any = false;
  for (size_t t = 0; t < tables_.size(); ++t) any = any || clips(t);
  if (!any) return;
  squares_.assign(tables_.size(), 0);
  keyed_squares_.assign(tables_.has_keyed() ? tables_.size() : 0, {});
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!clips(t)) continue;
    if (tables_.keyed(t) != nullptr) {
      keyed_squares_[t] = squares_of<ExactSum>(t, communicator);
    } else {
      squares_[t] = squares_of<double>(t, communicator);
    }
  }
  // All replicas add the parts in the order of the ranks and get the same factors.
  std::vector<double> squares(tables_.size());
  for (const Bytes& part : communicator.all_gather(as_bytes_of<double>(squares_), label_)) {
    const auto of_rank = as_elements<double>(part);
    for (size_t t = 0; t < squares.size(); ++t) squares[t] += of_rank[t];
  }
  if (!keyed_squares_.empty()) {
    std::vector<ExactSum> sums(tables_.size());
    for (const Bytes& part :
         communicator.all_gather(as_bytes_of<ExactSum>(keyed_squares_), label_)) {
      const auto of_rank = as_elements<ExactSum>(part);
      for (size_t t = 0; t < sums.size(); ++t) sums[t] += of_rank[t];
    }
    for (size_t t = 0; t < sums.size(); ++t) squares[t] += sums[t].value();
  }
  std::map<int, double> of_group;
  for (size_t t = 0; t < tables_.size(); ++t) {
    const RowUpdate& update = tables_[t].update;
    if (clips(t) && update.global_clipnorm > 0)
      of_group[update.global_clipnorm_group] += squares[t];
  }
  scales_.assign(tables_.size(), 1.0F);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!clips(t)) continue;
    const RowUpdate& update = tables_[t].update;
    scales_[t] =
        static_cast<float>(update.clipnorm > 0 ? clip_factor(squares[t], update.clipnorm)
                                               : clip_factor(of_group[update.global_clipnorm_group],
                                                             update.global_clipnorm));
  }
}

}  // namespace keel::distribute
