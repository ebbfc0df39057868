// Agreement of the replicas of a strategy on an optimizer step before they perform it.
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

// The kind of gradient by which a variable is updated. The values are sent between replicas.
enum class GradientKind : int64_t { kNone = 0, kDense = 1, kRows = 2 };
// Returns kRows only for a sparse gradient whose step leaves the other rows of the variable
// unchanged.
GradientKind form_of(const Gradient& gradient, bool step_moves_all_rows);

// Returns a checksum of all elements, which is never 0.
uint64_t checksum(const Tensor& value);

// The proposal of one replica for a step.
struct StepProposal {
  // learning_rate and calls are read from the first replica of each process only.
  double learning_rate = 0;
  int64_t calls = 0;  // calls of apply_gradients before this one
  // The gradient kind of each variable.
  std::vector<GradientKind> forms = {};
  // For each variable its checksum if this process has not trained it yet, otherwise 0. Set by the
  // first replica of each process if there are several processes.
  std::vector<uint64_t> starts = {};
  // Hash of the gradient kinds that this process has predicted and by which it performs the step if
  // all processes have predicted the same. 0 if it waits for the agreement.
  uint64_t predicted = 0;
};

// The step that all replicas perform.
struct StepAgreement {
  double learning_rate = 0;
  int64_t calls = 0;
  // A variable with a gradient in some replicas has one in all.
  std::vector<GradientKind> forms = {};
  std::string refused = {};  // why there is no step; empty if there is one
};

// Encodes a proposal as a message, with data that identifies the variables.
std::vector<std::byte> encode_proposal(const StepProposal& proposal,
                                       const std::vector<Variable>& variables);

// Returns the encoded proposals with another hash of the prediction.
std::vector<std::vector<std::byte>> with_prediction(std::span<const distribute::Bytes> proposals,
                                                    uint64_t predicted);

// Returns what the proposals of all replicas, in rank order, agree on. `refused` is set if the
// lists of variables differ and, with several processes, if variables start from different values
// or if the learning rates or the numbers of calls differ.
StepAgreement agreement_of(const distribute::Placement& placement,
                           std::span<const distribute::Bytes> proposals,
                           const std::vector<Variable>& variables);

// Exchanges proposals. Collective; returns the agreement in all replicas. One replica of each
// process passes it to `on_last_arrival` before any replica continues.
StepAgreement agree_on_step(distribute::Communicator& communicator, const StepProposal& proposal,
                            const std::vector<Variable>& variables,
                            const std::function<void(const StepAgreement&)>& on_last_arrival);

// The last agreement of an optimizer, as remembered by a process. If its replicas propose the same
// again, the process predicts the next agreement. The proposals are then sent along with the sums
// of the gradients, which saves one exchange with the other processes. Written by one replica of
// the process, inside barriers.
struct StepMemory {
  // The variables of the last agreement, and the gradient kinds that this process proposed and that
  // all agreed on.
  std::vector<uint64_t> variables = {};
  std::vector<GradientKind> proposed = {}, agreed = {};

  // State of the current step.
  uint64_t predicted = 0;        // see StepProposal
  StepAgreement agreement = {};  // the prediction, or what all agreed on
  // Set if proposals of a step of virtual variables have been sent to the other processes and their
  // answers are not collected yet.
  std::optional<int64_t> posted = {};
  std::vector<Variable> posted_variables = {};

  // Predicts the agreement from the proposals of the local replicas, if possible; otherwise sets
  // `predicted` to 0.
  void predict(std::span<const distribute::Bytes> local_proposals,
               const std::vector<Variable>& of_step);
  // Stores what all replicas agree on. Returns true if all processes have predicted exactly that.
  bool resolve(const distribute::Placement& placement, std::span<const distribute::Bytes> proposals,
               const std::vector<Variable>& of_step);
};

}  // namespace keel
