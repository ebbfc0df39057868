#include <keel/optimizers/step/step_agreement.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <bit>
#include <iterator>
#include <span>

#include <keel/distribute/internal/placement.h>
#include <keel/optimizers/step/keyed_updates.h>

namespace keel {
namespace {

using distribute::Bytes;

constexpr char kOtherLists[] =
    "the replicas' lists of variables differ; pass the same list in every replica";

GradientKind joined(GradientKind a, GradientKind b) {
  if (a == GradientKind::kNone) return b;
  if (b == GradientKind::kNone) return a;
  return a == b ? a : GradientKind::kDense;
}

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 29;
}

// Hashes a variable's path without its digits, so that it is equal in all processes. The numbers in
// names count the layers created before, and one process may have created more of them.
uint64_t hash_of_path(const Variable& variable) {
  uint64_t hash = 1;
  for (const char c : variable.path()) {
    if (c < '0' || c > '9') hash = mixed(hash, static_cast<unsigned char>(c));
  }
  return hash;
}

// A message consists of a Head and one Proposed per variable.
struct Head {
  double learning_rate = 0;
  int64_t calls = 0;
  uint64_t predicted = 0;
};
struct Proposed {
  GradientKind form = GradientKind::kNone;
  int64_t rows = 0, elements = 0;
  uint64_t id = 0;    // identifies the variable within a process
  uint64_t path = 0;  // identifies the variable across processes
  uint64_t start = 0;
};

const Head& head_of(Bytes message) { return *reinterpret_cast<const Head*>(message.data()); }

std::span<const Proposed> proposed_in(Bytes message) {
  return distribute::as_elements<Proposed>(message.subspan(sizeof(Head)));
}

// Returns why two replicas cannot perform a step of these variables together; empty if they can.
std::string difference(std::span<const Proposed> a, std::span<const Proposed> b, bool one_process,
                       const std::vector<Variable>& variables) {
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = one_process ? a[i].id == b[i].id : a[i].path == b[i].path;
    if (!same || a[i].rows != b[i].rows || a[i].elements != b[i].elements) return kOtherLists;
    if (!one_process && a[i].start != b[i].start) {
      return absl::StrCat(
          variables[i].path(),
          " differs between processes, or only some of them have trained it; run the same "
          "program in all processes");
    }
  }
  return {};
}

// Returns why the optimizers of two processes cannot perform a step together; empty if they can.
std::string difference(const Head& first, const Head& other, int process) {
  const auto describe = [process](const char* option, const auto& of_first, const auto& of_other) {
    return absl::StrCat("the ", option, " is ", of_first, " in rank 0 and ", of_other, " in rank ",
                        process, "; set the same value in all processes");
  };
  if (first.calls != other.calls) return describe("number of calls", first.calls, other.calls);
  if (first.learning_rate != other.learning_rate) {
    return describe("learning rate", first.learning_rate, other.learning_rate);
  }
  return {};
}

// Compares all replicas: those of one process with its first replica, and the first replica of each
// process with the first one of all.
std::string difference(const distribute::Placement& placement, std::span<const Bytes> messages,
                       const std::vector<Variable>& variables) {
  const auto first = proposed_in(messages[0]);
  for (const Bytes& message : messages) {
    if (message.size() != messages[0].size()) return kOtherLists;
  }
  if (first.size() != variables.size()) return kOtherLists;
  for (int p = 1; p < placement.processes(); ++p) {
    const Head& head = head_of(messages[placement.first[p]]);
    std::string why = difference(head_of(messages[0]), head, p);
    if (!why.empty()) return why;
  }
  for (int p = 0; p < placement.processes(); ++p) {
    const auto of_process = proposed_in(messages[placement.first[p]]);
    std::string why = difference(first, of_process, p == 0, variables);
    for (int r = placement.first[p]; why.empty() && r < placement.first[p + 1]; ++r) {
      why = difference(of_process, proposed_in(messages[r]), true, variables);
    }
    if (!why.empty()) return why;
  }
  return {};
}

// Returns the kind of each variable's gradient over the replicas that sent `proposals`, which list
// equal variables.
std::vector<GradientKind> joined_forms(std::span<const Bytes> proposals) {
  std::vector<GradientKind> out(proposed_in(proposals[0]).size(), GradientKind::kNone);
  for (const Bytes& message : proposals) {
    const auto proposed = proposed_in(message);
    for (size_t i = 0; i < proposed.size(); ++i) out[i] = joined(out[i], proposed[i].form);
  }
  return out;
}

uint64_t hash_of(const std::vector<GradientKind>& forms) {
  uint64_t hash = 1;
  for (const GradientKind form : forms) hash = mixed(hash, static_cast<uint64_t>(form) + 1);
  // 0 stands for no prediction.
  return hash | 1;
}

std::vector<uint64_t> ids_of(const std::vector<Variable>& variables) {
  std::vector<uint64_t> out;
  for (const Variable& v : variables) out.push_back(v.id());
  return out;
}

}  // namespace

std::vector<std::byte> encode_proposal(const StepProposal& proposal,
                                       const std::vector<Variable>& variables) {
  const Head head = {.learning_rate = proposal.learning_rate,
                     .calls = proposal.calls,
                     .predicted = proposal.predicted};
  std::vector<Proposed> all;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    // The shape of a table with dynamic ids is that of its last read.
    const bool is_keyed = keyed_rows_of(v) != nullptr;
    all.push_back({.form = proposal.forms[i],
                   .rows = v.shape().rank() == 0 ? 1
                           : is_keyed            ? 0
                                                 : v.shape()[0],
                   .elements = is_keyed ? 0 : v.shape().size(),
                   .id = v.id(),
                   .path = hash_of_path(v),
                   .start = proposal.starts[i]});
  }
  std::vector<std::byte> out;
  std::ranges::copy(std::as_bytes(std::span(&head, 1)), std::back_inserter(out));
  std::ranges::copy(std::as_bytes(std::span(all)), std::back_inserter(out));
  return out;
}

StepAgreement agreement_of(const distribute::Placement& placement, std::span<const Bytes> proposals,
                           const std::vector<Variable>& variables) {
  StepAgreement out = {.learning_rate = head_of(proposals[0]).learning_rate,
                       .calls = head_of(proposals[0]).calls,
                       .refused = difference(placement, proposals, variables)};
  if (!out.refused.empty()) return out;
  out.forms = joined_forms(proposals);
  return out;
}

GradientKind form_of(const Gradient& gradient, bool step_moves_all_rows) {
  if (!gradient) return GradientKind::kNone;
  return gradient.is_slices() && !step_moves_all_rows ? GradientKind::kRows : GradientKind::kDense;
}

uint64_t checksum(const Tensor& value) {
  uint64_t hash = 1;
  for (const float x : value.data<float>()) hash = mixed(hash, std::bit_cast<uint32_t>(x));
  return hash | 1;
}

StepAgreement agree_on_step(distribute::Communicator& communicator, const StepProposal& proposal,
                            const std::vector<Variable>& variables,
                            const std::function<void(const StepAgreement&)>& on_last_arrival) {
  const std::vector<std::byte> message = encode_proposal(proposal, variables);
  const std::vector<Bytes> messages =
      communicator.all_gather(message, "the variables of a step", [&](std::span<const Bytes> all) {
        on_last_arrival(agreement_of(communicator.placement(), all, variables));
      });
  return agreement_of(communicator.placement(), messages, variables);
}

std::vector<std::vector<std::byte>> with_prediction(std::span<const Bytes> proposals,
                                                    uint64_t predicted) {
  std::vector<std::vector<std::byte>> out;
  for (const Bytes& proposal : proposals) {
    Head head = head_of(proposal);
    head.predicted = predicted;
    out.emplace_back(proposal.begin(), proposal.end());
    std::ranges::copy(std::as_bytes(std::span(&head, 1)), out.back().begin());
  }
  return out;
}

void StepMemory::predict(std::span<const Bytes> local_proposals,
                         const std::vector<Variable>& of_step) {
  predicted = 0;
  if (agreed.empty() || variables != ids_of(of_step)) return;
  // The proposals can be sent along with sums only if a variable has a dense gradient. A step of
  // virtual variables alone sends them without sums.
  bool any_variable = false;
  bool any_sum = false;
  for (size_t i = 0; i < of_step.size(); ++i) {
    any_variable |= !of_step[i].is_virtual();
    any_sum |= !of_step[i].is_virtual() && agreed[i] == GradientKind::kDense;
  }
  if (any_variable && !any_sum) return;
  for (const Bytes& message : local_proposals) {
    if (message.size() != local_proposals[0].size()) return;
    const auto proposed_here = proposed_in(message);
    if (proposed_here.size() != of_step.size()) return;
    for (size_t i = 0; i < of_step.size(); ++i) {
      if (proposed_here[i].start != 0 || proposed_here[i].id != variables[i]) return;
    }
  }
  if (joined_forms(local_proposals) != proposed) return;
  predicted = hash_of(agreed);
  agreement = {.learning_rate = head_of(local_proposals[0]).learning_rate,
               .calls = head_of(local_proposals[0]).calls,
               .forms = agreed};
}

bool StepMemory::resolve(const distribute::Placement& placement, std::span<const Bytes> proposals,
                         const std::vector<Variable>& of_step) {
  agreement = agreement_of(placement, proposals, of_step);
  if (!agreement.refused.empty()) {
    agreed.clear();
    return false;
  }
  variables = ids_of(of_step);
  proposed = joined_forms(proposals.subspan(placement.first_local(), placement.local()));
  agreed = agreement.forms;
  const uint64_t hash = hash_of(agreed);
  for (int p = 0; p < placement.processes(); ++p) {
    if (head_of(proposals[placement.first[p]]).predicted != hash) return false;
  }
  return true;
}

}  // namespace keel
