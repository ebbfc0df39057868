// What a Planner gathers and a ServingPlan keeps. Private to plans.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/framework/kernels/gemm/packed_gemm.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

struct Planner::State {
  // Rows in the workspace, which may be a part of other rows, or a tensor; or one of these under
  // another shape.
  struct Value {
    TensorLike symbol;  // with its mask
    TensorSpec spec = {};
    int slot = -1;  // of tensors
    bool is_input = false;
    bool is_constant = false;
    int parent = -1;     // whose rows hold these
    int64_t column = 0;  // where in the parent's
    // Of what an operation that is called returns: symbols of it for batches of each of
    // batch_sizes. Empty if they cannot be told.
    std::vector<TensorLike> at_sizes = {};
  };
  struct Step {
    std::unique_ptr<PlanStep> step;
    std::vector<PlanValue> reads, writes;
    std::string layer;
  };

  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<PlanLookup> lookups;  // of inputs
  std::vector<PlanValue> looked_up;
  std::vector<std::string> input_names;               // inputs have the first slots
  std::vector<std::pair<int, TensorLike>> constants;  // by slot
  int slots = 0;
  int64_t scratch = 0;
  // What operations that are called are tried on: a result is taken for rows of the batch if it is
  // for a small one and a large one. Both have divisors in plenty, for operations that make groups
  // of rows. The size of an input of fixed size, if there is one.
  std::array<int64_t, 2> batch_sizes = {60, 5040};
  // Of the variables of layers that are called.
  std::shared_ptr<VariableSnapshot> copies = std::make_shared<VariableSnapshot>();
  // By the ids of kernel and bias.
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const kernels::PackedMatrix>> packed;
  // Of lookups, by their ids: values that were copied for each of several are kept once.
  std::map<uint64_t, Tensor> tables;
  // By the ids of what they were made from; none if they are not wanted.
  std::optional<std::map<uint64_t, Int8Table>> int8_tables;
  std::vector<std::string> layers;  // those that are being planned, outermost first

  // Whether a value has one row for each of the batch; none if that cannot be told.
  std::optional<bool> is_batch(PlanValue value) const;
  // A symbol of it for a batch of batch_sizes[which]; none if its size is not known then.
  std::optional<TensorLike> at_size(PlanValue value, size_t which) const;
  // The results of the operation for such batches, by size; empty if they cannot be told.
  std::vector<std::vector<TensorLike>> try_sizes(Operation& operation, const PlanValues& inputs,
                                                 const CallOptions& options, size_t results) const;
  // What holds the rows of a value in the end, and from which column on.
  std::pair<int, int64_t> root(PlanValue value) const;
  // Places of all values; returns how many floats a row of the workspace takes. `results` are read
  // at the end.
  int64_t place_values(const std::vector<PlanValue>& results, std::vector<PlanPlace>& places) const;
};

}  // namespace keel
