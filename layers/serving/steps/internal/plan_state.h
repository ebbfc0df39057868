// The state that a Planner builds and a ServingPlan keeps. Private to plans.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/framework/kernels/gemm/packed_gemm.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {

// Values, steps and tables of a plan.
struct Planner::State {
  // A value is one of: rows in the workspace, possibly a column range of another value's rows; a
  // tensor in a slot; or another value with a different shape.
  struct Value {
    TensorLike symbol;  // symbolic, with its mask
    TensorSpec spec = {};
    int slot = -1;  // for tensors only
    bool is_input = false;
    bool is_constant = false;
    int parent = -1;     // value whose rows contain these rows
    int64_t column = 0;  // first column in the parent's rows
    // For results of called operations: symbolic results for each size of batch_sizes. Empty if
    // they cannot be determined.
    std::vector<TensorLike> at_sizes = {};
    std::set<std::string> sources = {};  // names of the inputs on which the value depends
  };
  // A step with the values it reads and writes and the name of its layer.
  struct Step {
    std::unique_ptr<PlanStep> step;
    std::vector<PlanValue> reads, writes;
    std::string layer;
  };

  std::vector<Value> values;
  std::vector<Step> steps;
  std::vector<PlanLookup> lookups;  // lookups of inputs, combined in one step
  std::vector<PlanValue> looked_up;
  std::vector<std::string> input_names;               // inputs have the first slots
  std::vector<std::pair<int, TensorLike>> constants;  // by slot
  int slots = 0;
  int64_t scratch = 0;
  // Batch sizes at which called operations are tried symbolically. A result is treated as rows of
  // the batch if its first dimension follows the batch at a small and at a large size. Both sizes
  // have many divisors, because an operation may group rows. If an input has a fixed batch size,
  // both are equal to it.
  std::array<int64_t, 2> batch_sizes = {60, 5040};
  // Copies of the variables of called layers.
  std::shared_ptr<VariableSnapshot> copies = std::make_shared<VariableSnapshot>();
  // Packed weights by the ids of kernel and bias.
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const kernels::PackedMatrix>> packed;
  // Tables of lookups by tensor id, so that several copies of the same values are stored once.
  std::map<uint64_t, Tensor> tables;
  // Converted tables by the id of the original; unset if int8 tables are not requested.
  std::optional<std::map<uint64_t, std::shared_ptr<const Int8Table>>> int8_tables;
  std::vector<std::string> layers;  // layers being planned, outermost first

  // Returns the names of the inputs on which the values depend.
  std::set<std::string> sources_of(const PlanValues& inputs) const;
  // Returns true if a value has one row per row of the batch; nothing if this is unknown.
  std::optional<bool> is_batch(PlanValue value) const;
  // Returns a symbolic value for a batch of batch_sizes[which]; nothing if its size is unknown.
  std::optional<TensorLike> at_size(PlanValue value, size_t which) const;
  // Returns the results of the operation for such batches, by size; empty if they cannot be
  // determined.
  std::vector<std::vector<TensorLike>> try_sizes(Operation& operation, const PlanValues& inputs,
                                                 const CallOptions& options, size_t results) const;
  // Follows the parents of a value. Returns the outermost value and the first column in it.
  std::pair<int, int64_t> root(PlanValue value) const;
  // Assigns a place to each value, so that values whose live ranges do not overlap may share
  // memory. Returns the number of floats per row of the workspace. `results` are read after the
  // last step.
  int64_t place_values(const std::vector<PlanValue>& results, std::vector<PlanPlace>& places) const;
};

}  // namespace keel
