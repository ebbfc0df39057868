#include <keel/layers/embedding/internal/id_rows_plan.h>

#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>

namespace keel {

std::optional<PlanValue> plan_id_rows(Planner& planner, const IdRowsPlan& rows) {
  const TensorSpec ids = planner.spec(rows.ids);
  const bool is_dense = ids.layout == Layout::kDense;
  const int rank = ids.shape.rank();
  if (rank != 2 && !(is_dense && rank == 1)) return {};
  if (rows.weights && (is_dense || planner.spec(*rows.weights).layout != ids.layout)) return {};
  return planner.look_up({.caller = rows.caller,
                          .table = rows.keys == nullptr ? rows.table : rows.keys->table(),
                          .scales = {},
                          .ids = rows.ids,
                          .weights = rows.weights,
                          .combiner = combiner_from_name(rows.combiner),
                          .int8 = nullptr,
                          .keys = rows.keys,
                          .pools_dense = is_dense && rank == 2,
                          .max_row_length = is_dense ? kUnknown : rows.max_row_length,
                          .finite_weights = true});
}

}  // namespace keel
