// ProcessGroup: the processes of one job, such as the ranks started by mpirun.
//
// All processes run the same program. Everything that exchanges data (collectives of replicas,
// Strategy::run() and reduce(), reading a variable that is combined over replicas) must be called
// by all of them in the same order. If they make different calls at the same time, all throw
// RuntimeError. When one process fails, the job is over: the others throw Aborted at their next
// exchange or in the one they wait in, and every process has a nonzero exit code.
//
// A wait for another process ends with a RuntimeError that names it after the number of seconds in
// the environment variable KEEL_PROCESS_TIMEOUT (default 300; 0 means no limit). Time that a
// process spends on long work before its next exchange, such as writing a file, does not count
// while a LongWork object is alive.
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

// Thrown by processes and replicas that take part in a collective after another one has failed.
class Aborted : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

using Bytes = std::span<const std::byte>;  // A view of bytes.

// The amount of data sent.
struct Traffic {
  int64_t bytes_sent = 0;  // number of bytes
  int64_t messages = 0;    // number of messages that are not empty
};

// The processes of a job and their means of exchanging data. One thread at a time may exchange.
class ProcessGroup {
 public:
  // The message of one process to another: any number of byte strings, received separately.
  using Parts = std::vector<Bytes>;

  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;  // rank of this process
  virtual int size() const = 0;  // number of processes

  // Sends send[p] to each other process p and returns the messages received, by rank. The message
  // of this process to itself is not sent and comes back empty. Collective; `what` is the label of
  // the call, which errors contain. One thread at a time may call it. The result is valid until the
  // second exchange after this one begins; each part is aligned to 16 bytes. Throws ValueError
  // unless `send` has size() elements.
  virtual std::vector<Parts> exchange(std::string_view what, std::span<const Parts> send) = 0;

  // A split exchange. post() returns without waiting for other processes, and the sent data may
  // change afterwards. collect() takes the number that post() returned and returns what the others
  // posted; its results are valid as long as those of exchange(). All processes must make their
  // posts and exchanges in the same order. Of a post that is not collected before the job ends,
  // only the label is checked. The default post() makes a complete exchange.
  virtual int64_t post(std::string_view what, std::span<const Parts> send);
  virtual std::vector<Parts> collect(int64_t posted);  // See post().
  // Tells the other processes that this one has reached `what`, without waiting for them. A process
  // that makes another call instead fails immediately, and this process at its next exchange.
  virtual void notify(std::string_view what);

  // See LongWork.
  virtual void begin_long_work(std::string_view) {}
  virtual void end_long_work() noexcept {}  // See LongWork.

  // Ends the job: the other processes throw Aborted, "rank 1 failed: <why>". Only the first call
  // has an effect. Does nothing in a job of one process. May be called from any thread.
  virtual void abort(const std::string& why) noexcept = 0;

  // Returns what exchanges have sent to other processes so far, including headers.
  virtual Traffic sent() const = 0;

 private:
  // Used by the default post() and collect(): copies of received messages, aligned to 16 bytes.
  struct Posted {
    std::vector<std::unique_ptr<std::byte[]>> bytes;
    std::vector<Parts> received;
  };
  std::map<int64_t, Posted> posted_;
  std::vector<Posted> collected_;
  int64_t posts_ = 0;
};

// While a LongWork is alive, processes that wait for this one are notified that it is working on
// `what`. Their timeout does not expire as long as this process runs.
class LongWork {
 public:
  // Begins the work. `what` is its name in messages.
  LongWork(ProcessGroup& group, std::string_view what) : group_(group) {
    group_.begin_long_work(what);
  }
  ~LongWork() { group_.end_long_work(); }
  LongWork(const LongWork&) = delete;
  LongWork& operator=(const LongWork&) = delete;

 private:
  ProcessGroup& group_;
};

// Returns the job of this process; a job of one process unless an MPI launcher started it. Throws
// RuntimeError if one did and this library was built without MPI.
ProcessGroup& processes();

// Returns a job that consists of this process only.
ProcessGroup& single_process();

// Exchanges the same parts with all processes.
std::vector<ProcessGroup::Parts> all_gather(ProcessGroup& group, std::string_view what,
                                            const ProcessGroup::Parts& parts);

}  // namespace keel::distribute
