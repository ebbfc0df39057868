// ProcessGroup: the processes of one job, such as the ranks that mpirun has started.
//
// All processes run the same program: everything that ends in an exchange (collectives of
// replicas, Strategy::run and reduce, reading a variable that is combined over replicas) must be
// called by all of them, in the same order. Different calls at once are a RuntimeError in all.
// A job is over once one process has failed: the others throw Aborted at their next exchange, or
// in the one they wait in, and the exit code of each is not 0.
//
// A wait for another process ends with a RuntimeError that names it after as many seconds as the
// environment variable KEEL_PROCESS_TIMEOUT says; 300 if unset, 0: never. Work that keeps a process
// from its next exchange for long, such as writing a file, does not count if a LongWork stands
// around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <keel/framework/base/errors.h>

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

  // An exchange in two halves. post() returns before anything has come, and what was sent may
  // change from then on. collect() returns what the others have posted; the results are valid as
  // those of exchange(). Posts and exchanges together are made in the same order by all processes.
  // What is not collected before the job ends has only been checked for its label.
  // By default post() is a whole exchange.
  virtual int64_t post(std::string_view what, std::span<const Parts> send);
  virtual std::vector<Parts> collect(int64_t posted);
  // Tells the other processes that this one has come to `what`, and does not wait for them: those
  // that do something else instead fail at once, and this process at its next exchange.
  virtual void announce(std::string_view what);

  // See LongWork.
  virtual void begin_long_work(std::string_view) {}
  virtual void end_long_work() noexcept {}

  // Ends the job: the other processes throw Aborted, "rank 1 failed: <why>". Only the first call
  // counts. Does nothing in a job of one process. From any thread.
  virtual void abort(const std::string& why) noexcept = 0;

  // All that exchanges have sent to other processes, their headers included.
  virtual Traffic sent() const = 0;

 private:
  // Of post() and collect() by default: copies of what has come, aligned to 16 bytes.
  struct Posted {
    std::vector<std::unique_ptr<std::byte[]>> bytes;
    std::vector<Parts> received;
  };
  std::map<int64_t, Posted> posted_;
  std::vector<Posted> collected_;
  int64_t posts_ = 0;
};

// While it lives, other processes that wait for this one know that it works, at `what`, and their
// time does not run out as long as the process lives.
class LongWork {
 public:
  LongWork(ProcessGroup& group, std::string_view what) : group_(group) {
    group_.begin_long_work(what);
  }
  ~LongWork() { group_.end_long_work(); }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  ProcessGroup& group_;
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
