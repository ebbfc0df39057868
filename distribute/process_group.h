// ProcessGroup: the processes of one job, such as the ranks that mpirun has started.
//
// All processes run the same program: everything that ends in an exchange (collectives of
// replicas, Strategy::run and reduce, reading a variable that is combined over replicas) must be
// called by all of them, in the same order. Different calls at once are a RuntimeError in all.
// A job is over once one process has failed: the others throw Aborted at their next exchange, or
// in the one they wait in, and the exit code of each is not 0.
//
// A wait for another process ends with a RuntimeError after as many seconds as the environment
// variable KEEL_PROCESS_TIMEOUT says; 300 if unset, 0: never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/errors.h"

namespace keel::distribute {

// Thrown by those who take part in a collective after another has failed.
class Aborted : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

using Bytes = std::span<const std::byte>;

// What went from one place to others.
struct Traffic {
  int64_t bytes_sent = 0;
  int64_t messages = 0;
};

class ProcessGroup {
 public:
  // What one process sends to another: any number of byte strings, which arrive apart.
  using Parts = std::vector<Bytes>;

  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;  // of this process
  virtual int size() const = 0;

  // Sends send[p] to each other process p and returns what each has sent here, by rank; that of
  // this process is not sent and comes back empty. Collective; `what` says which call it is and
  // stands in the errors. One thread at a time. The result stays until the second next exchange
  // begins; each part is aligned to 16 bytes. ValueError unless there is a send[p] for each p.
  virtual std::vector<Parts> exchange(std::string_view what, std::span<const Parts> send) = 0;

  // Ends the job: the other processes throw Aborted, "rank 1 failed: <why>". Only the first call
  // counts. Does nothing in a job of one process. From any thread.
  virtual void abort(const std::string& why) noexcept = 0;

  // All that exchanges have sent to other processes, their headers included.
  virtual Traffic sent() const = 0;
};

// The job that this process is in; of one process unless an MPI launcher has started it.
// RuntimeError if one has and this library was built without MPI.
ProcessGroup& processes();

// A job of this process alone.
ProcessGroup& single_process();

// An exchange that sends the same parts to all.
std::vector<ProcessGroup::Parts> all_gather(ProcessGroup& group, std::string_view what,
                                            const ProcessGroup::Parts& parts);

}  // namespace keel::distribute
