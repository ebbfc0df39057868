// OptimizerSlots: what an optimizer keeps beside each variable that it trains.
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/distribute/communicator.h>
#include <keel/framework/kernels/update_rules/update_rule.h>
#include <keel/optimizers/step/slot_sharding.h>

namespace keel {

// One slot of one variable of a list.
struct SlotPlace {
  size_t variable = 0, slot = 0;
};

// The order in which Keras's files hold the slots of so many variables: group after group.
std::vector<SlotPlace> order_in_files(std::span<const Slot> slots, size_t variables);

// Slots are variables of the shape and dtype of the one that they belong to. Thread safe but for
// the collective functions, which one thread of each process calls.
class OptimizerSlots {
 public:
  // The slots that each variable has.
  explicit OptimizerSlots(std::vector<Slot> specs) : specs_(std::move(specs)) {}

  const std::vector<Slot>& specs() const { return specs_; }
  // Makes those that are missing; virtual variables have none.
  void build(const std::vector<Variable>& variables);
  bool has(const Variable& variable) const;
  // In the order of specs(); empty if the variable has none yet. As they are in this process.
  std::vector<Variable> slots(const Variable& variable) const;

  // In replicas of several processes, of a step that changes the variables `moved`, or slots of
  // theirs, and `dense` of them by dense gradients: each part of those goes to the process that
  // updates it, whoever had it before. At most one exchange: the other replicas may still read
  // what came in the one before.
  void shard(const std::vector<Variable>& dense, const std::vector<Variable>& moved);
  // Gives every process the whole slots of these variables. Collective if they are dealt.
  void make_whole(const std::vector<Variable>& variables) const;

 private:
  const std::vector<Slot> specs_;
  mutable std::mutex mutex_;                         // guards slots_
  std::map<uint64_t, std::vector<Variable>> slots_;  // by Variable::id
  // Of the replicas in several processes of `dealt_to_`; no variable in two of them.
  mutable std::vector<SlotSharding> deals_;
  distribute::ProcessGroup* dealt_to_ = nullptr;
};

}  // namespace keel
