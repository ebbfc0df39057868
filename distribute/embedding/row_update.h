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

// An update clips the gradients by norm, clips the row's gradient elementwise, adds the gradient of
// the L2 penalty, applies weight decay, runs the rule, clips the weights elementwise and limits the
// norm of the row, in this order. Bounds that are unset or 0 do not apply.
// RowUpdater clips by norm; TableShard::update() does the rest: prepare(), rule->update_rows(),
// clip_weights().
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

  // Scales the gradient of the table, which consists of its rows' gradients summed over the global
  // batch, down to this norm. Requires use_gradient_accumulation.
  double clipnorm = 0;
  // Scales the gradients of all tables of a group by one factor, so that the norm of all of them
  // does not exceed global_clipnorm. Tables of a group have equal global_clipnorm.
  double global_clipnorm = 0;
  int global_clipnorm_group = 0;
  // Of the rows that are updated: adds 2 l2 w to the gradient, and limits the Euclidean norm of w.
  double l2 = 0;
  double max_norm = 0;

  // Returns true if the update depends on the norm of the table's gradient.
  bool clips_by_norm() const { return clipnorm > 0 || global_clipnorm > 0; }
  // Clips the gradients [rows, dim] of the rows, adds the gradient of the penalty, and applies
  // weight decay to the rows, which must be distinct.
  void prepare(const TableRows& rows, float* gradients, const Step& step) const;
  // Clips the weights and the norms of the rows.
  void clip_weights(const TableRows& rows) const;
};

}  // namespace keel::distribute
