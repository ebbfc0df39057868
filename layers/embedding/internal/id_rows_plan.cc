#include <keel/layers/embedding/internal/id_rows_plan.h>

#include <memory>

#include <keel/layers/embedding/internal/weighted_rows_step.h>
#include <keel/layers/embedding/tables/internal/kernel_options.h>
#include <keel/layers/serving/steps/internal/serving_keys.h>

namespace keel {

namespace {

// Adds a lookup of dense ids that have one weight each.
std::optional<PlanValue> plan_weighted(Planner& planner, const IdRowsPlan& rows) {
  const TensorSpec ids = planner.spec(rows.ids);
  const int rank = ids.shape.rank();
  const kernels::Combiner combiner = combiner_from_name(rows.combiner);
  const bool leaves_out =
      rows.keys != nullptr && rows.keys->options().not_admitted.kind == NotAdmitted::Kind::kIgnore;
  if (leaves_out || (rank == 1 && combiner != kernels::Combiner::kSum)) return {};
  const auto weights = planner.rows(*rows.weights);
  if (!weights || planner.row_shape((*weights)[0]) != planner.row_shape(rows.ids)) return {};
  const Tensor& table = rows.keys == nullptr ? rows.table : rows.keys->table();
  const WeightedRowsStep::Form form = {.ids = planner.row_shape(rows.ids).size(),
                                       .dim = table.dim(1),
                                       .pools = rank == 2,
                                       .pooled = rows.keys != nullptr,
                                       .combiner = combiner};
  if (!WeightedRowsStep::fits(form)) return {};
  const auto found = planner.look_up({.caller = rows.caller,
                                      .table = table,
                                      .scales = {},
                                      .ids = rows.ids,
                                      .int8 = nullptr,
                                      .keys = rows.keys});
  if (!found) return {};
  const PlanValue out = planner.make_rows({form.dim});
  planner.reserve_scratch(WeightedRowsStep::scratch(form));
  planner.add(std::make_unique<WeightedRowsStep>(rows.caller, form, *found, (*weights)[0], out),
              {*found, (*weights)[0]}, {out});
  return out;
}

}  // namespace

std::optional<PlanValue> plan_id_rows(Planner& planner, const IdRowsPlan& rows) {
  const TensorSpec ids = planner.spec(rows.ids);
  const bool is_dense = ids.layout == Layout::kDense;
  const int rank = ids.shape.rank();
  if (rank != 2 && !(is_dense && rank == 1)) return {};
  if (rows.weights && planner.spec(*rows.weights).layout != ids.layout) return {};
  if (rows.weights && is_dense) return plan_weighted(planner, rows);
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
