// RowUpdate: all that happens to a row of an embedding table in one step.
#pragma once

#include <memory>
#include <optional>

#include <keel/framework/kernels/update_rules/update_rule.h>

namespace keel::distribute {

// In this order: the row's gradient is clipped elementwise, the weights decay, the rule runs, the
// weights are clipped. Rows that a batch did not look up are left alone unless `lazy` is false.
struct RowUpdate {
  std::shared_ptr<const UpdateRule> rule = nullptr;  // null: the table is never updated
  std::optional<double> clip_gradient_min = {}, clip_gradient_max = {};
  // w -= weight_decay_factor * w, times the learning rate on request.
  double weight_decay_factor = 0;
  bool multiply_weight_decay_factor_by_learning_rate = false;
  std::optional<double> clip_weight_min = {}, clip_weight_max = {};
  // True: the gradients of a row are summed over the global batch and the row is stepped once.
  // False: once for each occurrence, in the order replica, feature, sample, position.
  bool use_gradient_accumulation = true;
  // False: every row of the table is stepped, with gradient 0 where it was not looked up. Costs
  // time in proportion to the table.
  bool lazy = true;

  // Steps each row by its row of `gradients`, which may be changed; a row that stands there several
  // times in the order given.
  void apply(const TableRows& rows, float* gradients, const Step& step) const;

 private:
  void apply_once(const TableRows& rows, float* gradients, const Step& step) const;
};

}  // namespace keel::distribute
