#include <keel/distribute/dynamic/internal/saved_table.h>

#include <numeric>

#include <keel/distribute/dynamic/internal/state_rows.h>

namespace keel::distribute {
namespace {

template <Element T>
Tensor rows_between(const Tensor& value, int64_t begin, int64_t end) {
  std::vector<int64_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), begin);
  return state_rows<T>(value, rows);
}

}  // namespace

SavedPart saved_part(const Tensor& value) {
  return {.spec = value.spec(), .read = [value](int64_t begin, int64_t end) {
            if (value.rank() == 0 || (begin == 0 && end == value.dim(0))) return value;
            if (value.dtype() == DType::kString) {
              return rows_between<std::string>(value, begin, end);
            }
            if (value.dtype() == DType::kInt64) return rows_between<int64_t>(value, begin, end);
            return rows_between<float>(value, begin, end);
          }};
}

SavedTable saved_table(const DynamicTableState& state) {
  SavedTable out = {.keys = saved_part(state.keys),
                    .rows = saved_part(state.rows),
                    .slots = {},
                    .count = saved_part(state.count),
                    .last = saved_part(state.last),
                    .born = saved_part(state.born),
                    .shards = {},
                    .pending_keys = saved_part(state.pending_keys),
                    .pending_count = saved_part(state.pending_count),
                    .pending_last = saved_part(state.pending_last),
                    .sketch = state.sketch,
                    .fallback = state.fallback,
                    .fallback_slots = state.fallback_slots,
                    .statistics = state.statistics,
                    .clock = state.clock,
                    .stream = state.stream};
  for (const auto& [name, slot] : state.slots) out.slots.emplace(name, saved_part(slot));
  return out;
}

}  // namespace keel::distribute
