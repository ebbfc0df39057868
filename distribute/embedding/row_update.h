// RowUpdate: what the update of a row of an embedding table does in one step.
#pragma once

#include <memory>
#include <optional>

namespace keel {
class UpdateRule;
struct Step;
struct TableRows;
}  // namespace keel

namespace keel::distribute {

// An update clips the row's gradient elementwise, applies weight decay, runs the rule and clips the
// weights elementwise, in this order. Clipping bounds that are unset do not apply.
// TableShard::update() performs it: prepare(), rule->update_rows(), clip_weights().
struct RowUpdate {
  std::shared_ptr<const UpdateRule> rule = nullptr;  // null: the table is never updated
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  // w -= weight_decay_factor * w. The factor is multiplied by the learning rate if the flag is set.
  double weight_decay_factor = 0;
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  // True: the gradients of a row are summed over the global batch, and the row is updated once.
  // False: it is updated once per occurrence, in the order replica, feature, sample, position.
  bool use_gradient_accumulation = true;
  // True: only the rows that the batch looks up are updated. False: every row of the table is
  // updated, with gradient 0 if it was not looked up, which costs time proportional to the size of
  // the table.
  bool lazy = true;

  // Clips the gradients [rows, dim] of the rows, and applies weight decay to the rows, which must
  // be distinct.
  void prepare(const TableRows& rows, float* gradients, const Step& step) const;
  // Clips the weights of the rows.
  void clip_weights(const TableRows& rows) const;
};

}  // namespace keel::distribute
