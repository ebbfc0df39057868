// How the replicas of a strategy agree on a step of an optimizer before they make it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/distribute/communicator.h>

namespace keel {

// How a gradient reaches its variable. Numbers travel between replicas.
enum class GradientKind : int64_t { kNone = 0, kDense = 1, kRows = 2 };
// Rows only if the step leaves the other rows of the variable alone.
GradientKind form_of(const Gradient& gradient, bool step_moves_all_rows);

// Of all elements; not 0.
uint64_t checksum(const Tensor& value);

// What one replica has for a step.
struct StepProposal {
  // Both of the first replica of each process; those of the others are not read.
  double learning_rate = 0;
  int64_t calls = 0;                     // of apply_gradients, before this one
  std::vector<GradientKind> forms = {};  // by variable
  std::vector<uint64_t> starts = {};  // by variable: its checksum if this process has not trained
                                      // it yet; of the first replica of each of several processes
  // Hash of the forms by which this process makes the step, if all others agree; 0: it waits for
  // the agreement.
  uint64_t foreseen = 0;
};

struct StepAgreement {
  double learning_rate = 0;
  int64_t calls = 0;
  std::vector<GradientKind> forms =
      {};                    // a variable with a gradient in some replicas has one in all
  std::string refused = {};  // why there can be no step; empty if there can
};

// A proposal as it travels, with what tells the variables apart.
std::vector<std::byte> encode_proposal(const StepProposal& proposal,
                                       const std::vector<Variable>& variables);

// Encoded proposals with another hash of what is foreseen.
std::vector<std::vector<std::byte>> with_foreseen(std::span<const distribute::Bytes> proposals,
                                                  uint64_t foreseen);

// What the proposals of all replicas, by rank, agree on. Refused are lists of different variables,
// and, of several processes, variables that start from different values, and different rates or
// numbers of calls.
StepAgreement agreement_of(const distribute::Placement& placement,
                           std::span<const distribute::Bytes> proposals,
                           const std::vector<Variable>& variables);

// Collective. All replicas get the agreement. One replica of each process gives it to
// `on_last_arrival` before any goes on.
StepAgreement agree_on_step(distribute::Communicator& communicator, const StepProposal& proposal,
                            const std::vector<Variable>& variables,
                            const std::function<void(const StepAgreement&)>& on_last_arrival);

// What a process remembers of an optimizer's last agreement. Where its replicas propose the same
// again, it foresees the next one: the proposals then go with the sums of the gradients, and other
// processes need not be waited for twice. Written by one replica of the process, in meetings.
struct StepMemory {
  // Of the last agreement: the variables, and the forms that this process proposed and that all
  // agreed on.
  std::vector<uint64_t> variables = {};
  std::vector<GradientKind> proposed = {}, agreed = {};

  // Of the step that goes on.
  uint64_t foreseen = 0;         // as in StepProposal
  StepAgreement agreement = {};  // what is foreseen, or what all agree on
  // Proposals of a step of virtual variables that other processes have not been waited for.
  std::optional<int64_t> posted = {};
  std::vector<Variable> posted_variables = {};

  // Foresees the agreement, if it can, from the proposals of the replicas here.
  void foresee(std::span<const distribute::Bytes> local_proposals,
               const std::vector<Variable>& of_step);
  // Keeps what all agree on. Whether all processes have foreseen just that.
  bool settle(const distribute::Placement& placement, std::span<const distribute::Bytes> proposals,
              const std::vector<Variable>& of_step);
};

}  // namespace keel
