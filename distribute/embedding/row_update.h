// RowUpdate: the complete update of a row of an embedding table in one step.
#pragma once

#include <memory>
#include <optional>

#include <keel/framework/kernels/update_rules/update_rule.h>

namespace keel::distribute {

// An update clips the row's gradient elementwise, applies weight decay, runs the rule and clips the
// weights elementwise, in this order. Clipping bounds that are unset do not apply.
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

  // Updates each row with its row of `gradients`, which may be modified. Rows must be distinct if
  // use_gradient_accumulation is true; otherwise a row that occurs several times is updated in the
  // given order. `rule` must not be null.
  void apply(const TableRows& rows, float* gradients, const Step& step) const;

 private:
  void apply_once(const TableRows& rows, float* gradients, const Step& step) const;
};

}  // namespace keel::distribute
