#include "optimizers/summed_rows.h"

#include <algorithm>

#include "framework/kernels/unique.h"
#include "framework/parallel.h"

namespace keel {

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
                 int64_t dim) {
  const int64_t grain = std::max<int64_t>(1, kUpdateGrain / dim);
  parallel_for(static_cast<int64_t>(ids.size()), grain, [&](int64_t begin, int64_t end) {
    VariableUpdate<T> mine = update;
    for (int64_t i = begin; i < end; ++i) mine.change(ids[i] * dim, values + i * dim, dim);
  });
}

int64_t row_size(const Variable& variable) {
  const Shape& shape = variable.shape();
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  return shape.size() / std::max<int64_t>(1, rows);
}

template SummedRows<float> sum_by_id(const IndexedSlices&, int64_t);
template SummedRows<double> sum_by_id(const IndexedSlices&, int64_t);
template void unscale(const StepPlan&, std::span<float>);
template void unscale(const StepPlan&, std::span<double>);
template void change_rows(const VariableUpdate<float>&, std::span<const int64_t>, float*, int64_t);
template void change_rows(const VariableUpdate<double>&, std::span<const int64_t>, double*,
                          int64_t);

}  // namespace keel
