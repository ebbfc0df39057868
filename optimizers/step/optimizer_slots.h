// OptimizerSlots: the slot variables of each variable that an optimizer trains.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/distribute/communicator.h>
#include <keel/framework/whole_variable_rule.h>
#include <keel/optimizers/step/slot_sharding.h>

namespace keel {

// The position of one slot of one variable in a list of variables.
struct SlotPlace {
  size_t variable = 0, slot = 0;
};

// Returns the order in which Keras's files hold the slots of `variables` variables: group by group,
// and variable by variable within a group.
std::vector<SlotPlace> order_in_files(std::span<const Slot> slots, size_t variables);

// Returns what a rule may know of the variable.
VariableInfo info_of(const Variable& variable);

// Returns the shape of slot `slot` of Optimizer::slot_specs() of an optimizer with this rule, or
// nothing if the variable does not have it.
std::optional<Shape> slot_shape(const UpdateRule& rule, size_t slot, const Variable& variable);

// Each slot is a variable with the dtype of its owner and, unless the rule says otherwise
// (VariableSlots), with its shape. Thread safe except for the collective functions, which one
// thread of each process calls.
class OptimizerSlots {
 public:
  // Takes the rule, and the slots that each variable has: those of the rule are first.
  OptimizerSlots(std::shared_ptr<const UpdateRule> rule, std::vector<Slot> specs)
      : rule_(std::move(rule)), specs_(std::move(specs)) {}

  const std::vector<Slot>& specs() const { return specs_; }
  // Creates missing slots. Virtual variables have none.
  void build(const std::vector<Variable>& variables);
  // Copies the variables into slots that start with them. Before the first step, the variables may
  // have been assigned since the slots were created, for example from a file.
  void restart(const std::vector<Variable>& variables);
  // Returns true if the slots of the variable have been created.
  bool has(const Variable& variable) const;
  // Returns the slots in the order of specs(), with the values of this process; empty if they have
  // not been created yet. A slot that the variable does not have is of shape (0).
  std::vector<Variable> slots(const Variable& variable) const;

  // Shards the slots over the processes, for a step in the replicas of several processes. The step
  // changes the variables `moved` or their slots, those of `dense` by dense gradients. Each shard
  // of the slots of `dense` is assigned to the process that updates it; sharded slots of other
  // steps that `moved` invalidates are gathered first. Makes at most one exchange, because the
  // other replicas may still read the result of the previous one.
  void shard(const std::vector<Variable>& dense, const std::vector<Variable>& moved);
  // Gives every process the whole slots of these variables. Collective if they are sharded.
  void make_whole(const std::vector<Variable>& variables) const;

 private:
  const std::shared_ptr<const UpdateRule> rule_;
  const std::vector<Slot> specs_;
  mutable std::mutex mutex_;                         // guards slots_
  std::map<uint64_t, std::vector<Variable>> slots_;  // by Variable::id
  // Shards over the processes of sharded_over_. No variable is in two of them.
  mutable std::vector<SlotSharding> shardings_;
  distribute::ProcessGroup* sharded_over_ = nullptr;
};

}  // namespace keel
