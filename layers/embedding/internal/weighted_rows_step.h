// WeightedRowsStep: pools rows of dense ids with one weight for each id, in a serving plan.
#pragma once

#include <string>

#include <keel/framework/base/combiner.h>
#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

// Has the bits of the operations of EmbedReduce (ops::multiply, ops::sum and ops::divide_no_nan)
// for what fits() accepts.
class WeightedRowsStep final : public PlanStep {
 public:
  // The sizes of a pooling.
  struct Form {
    int64_t ids = 1;      // per row of the batch
    int64_t dim = 1;      // columns of the table
    bool pools = true;    // false: one id in each row, whose row is multiplied by its weight
    bool pooled = false;  // the rows are sums, in which a zero is never negative
    kernels::Combiner combiner = kernels::Combiner::kSum;
  };
  // Returns true if ops::sum adds this many rows in one block, column by column.
  static bool fits(const Form& form) { return form.ids <= 128 && form.dim > 1; }
  // Reads rows [ids, dim] and weights [ids], and writes [dim]. Errors start with `caller`.
  WeightedRowsStep(std::string caller, const Form& form, PlanValue rows, PlanValue weights,
                   PlanValue out)
      : caller_(std::move(caller)), form_(form), rows_(rows), weights_(weights), out_(out) {}
  // Returns the number of floats of scratch memory that run() uses.
  static int64_t scratch(const Form& form) { return form.ids * (form.dim + 1); }

  // Throws ValueError for a weight that is NaN or infinite.
  void run(const PlanCall& call) const override;
  std::string what() const override;

 private:
  float divisor(const float* weights, float* scratch) const;

  const std::string caller_;
  const Form form_;
  const PlanValue rows_, weights_, out_;
};

}  // namespace keel
