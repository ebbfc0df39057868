// SlotSharding: state of an optimizer that is dealt to the processes of a job.
//
// A step of dense gradients updates each element of a variable and of its slots in one process. The
// new values of the variable are then told to all, those of the slots are not: each process has new
// slots for its own part alone, until they are shared.
#pragma once

#include <span>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/distribute/process_group.h>

namespace keel {

struct SlotSharding {
  std::vector<Variable> variables;           // of one step, in its order
  std::vector<std::vector<Variable>> slots;  // by variable; as many of each
  std::vector<int> first_replicas;           // of each process; then the number of replicas
  // Of the elements of all variables, one after the other: those that this process updates.
  int64_t first = 0, end = 0;

  bool has_any(const std::vector<Variable>& others) const;  // one of them is dealt here
};

// Makes the slots of these deals whole in every process. Collective over the processes, whose deals
// are of the same variables. One exchange.
void share_slots(distribute::ProcessGroup& group, std::span<const SlotSharding> deals);

}  // namespace keel
