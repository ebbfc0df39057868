// SlotSharding: optimizer slots that are sharded over the processes of a job.
//
// In a step by dense gradients, one process updates each element of a variable and of its slots.
// The new values of the variable are then sent to all processes; those of the slots are not. Each
// process has current slots for its own shard only, until all_gather_slots() gathers them.
#pragma once

#include <span>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/distribute/process_group.h>

namespace keel {

// The variables of one step and the shard of this process.
struct SlotSharding {
  std::vector<Variable> variables;           // variables of one step, in its order
  std::vector<std::vector<Variable>> slots;  // by variable; equally many of each
  std::vector<int> first_replicas;           // by process, followed by the number of replicas
  // The range of elements that this process updates, in the concatenation of all variables.
  int64_t first = 0, end = 0;

  bool has_any(const std::vector<Variable>& others) const;  // true if it contains one of them
};

// Gathers the slots of `shards` in every process. Collective over the processes, which pass the
// same variables. Makes one exchange.
void all_gather_slots(distribute::ProcessGroup& group, std::span<const SlotSharding> shards);

}  // namespace keel
