#include <keel/distribute/process_group.h>

#include <algorithm>
#include <cstdlib>

#include <keel/distribute/mpi_process_group_internal.h>

namespace keel::distribute {
namespace {

class SingleProcess final : public ProcessGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::vector<Parts> exchange(std::string_view what, std::span<const Parts> send) override {
    if (send.size() != 1) {
      throw ValueError(what, ": received ", send.size(),
                       " messages for a job of one process; pass one message");
    }
    return std::vector<Parts>(1);
  }
  void abort(const std::string&) noexcept override {}
  Traffic sent() const override { return {}; }
};

// Returns the number of processes that the launcher reports: Open MPI, MPICH and its derivatives,
// or Slurm if it starts the job by PMIx.
int launched_processes() {
  const bool by_pmix = std::getenv("PMIX_RANK") != nullptr;
  for (const char* variable :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", by_pmix ? "SLURM_STEP_NUM_TASKS" : "PMI_SIZE"}) {
    if (const char* size = std::getenv(variable)) return std::atoi(size);
  }
  return 1;
}

}  // namespace

int64_t ProcessGroup::post(std::string_view what, std::span<const Parts> send) {
  Posted posted;
  for (const Parts& parts : exchange(what, send)) {
    Parts& copies = posted.received.emplace_back();
    for (const Bytes& part : parts) {
      auto& copy = posted.bytes.emplace_back(std::make_unique<std::byte[]>(part.size()));
      std::ranges::copy(part, copy.get());
      copies.emplace_back(copy.get(), part.size());
    }
  }
  posted_.emplace(++posts_, std::move(posted));
  return posts_;
}

std::vector<ProcessGroup::Parts> ProcessGroup::collect(int64_t posted) {
  const auto found = posted_.find(posted);
  if (found == posted_.end())
    throw ValueError(
        "ProcessGroup::collect: ", posted,
        " was not posted or is already collected; collect the result of each post() once");
  if (collected_.size() == 2) collected_.erase(collected_.begin());
  collected_.push_back(std::move(found->second));
  posted_.erase(found);
  return collected_.back().received;
}

void ProcessGroup::notify(std::string_view what) { exchange(what, std::vector<Parts>(size())); }

ProcessGroup& single_process() {
  static SingleProcess group;
  return group;
}

ProcessGroup& processes() {
  static const std::unique_ptr<ProcessGroup> kJob =
      launched_processes() > 1 ? make_mpi_process_group() : nullptr;
  return kJob != nullptr ? *kJob : single_process();
}

std::vector<ProcessGroup::Parts> all_gather(ProcessGroup& group, std::string_view what,
                                            const ProcessGroup::Parts& parts) {
  const std::vector<ProcessGroup::Parts> send(group.size(), parts);
  return group.exchange(what, send);
}

}  // namespace keel::distribute
