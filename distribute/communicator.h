// Communicator: collectives among the replicas of one strategy, which may run in one process or in
// several.
//
// Barriers, all_gather, all_to_all, reduce_scatter and all_gather_shards are collective: all ranks
// must call them in the same order. If a rank makes another call, passes another label, or has
// already left the run, all ranks throw RuntimeError instead of waiting. Sums over ranks are
// balanced trees over the rank, so results depend neither on timing nor on how ranks are placed on
// processes.
//
// When replicas outnumber cores, every barrier switches through all of them. all_gather and
// all_to_all therefore take a single rendezvous, and work that one rank does for its process can be
// attached to an existing rendezvous (OnLastArrival).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

struct Placement;  // the assignment of ranks to processes

// The traffic of each kind of collective, without headers. Empty messages are not counted.
struct TrafficByKind {
  Traffic all_to_all = {};         // sent by all_to_all, all_gather and posts
  Traffic reduce_scatter = {};     // sent by reduce_scatter and reduce_scatter_if
  Traffic all_gather_shards = {};  // sent by all_gather_shards
};

// The collectives of the replicas of one strategy. A rank is a replica's index among all replicas.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;                    // rank of the calling thread
  virtual int size() const = 0;                    // number of ranks
  virtual const Placement& placement() const = 0;  // assignment of the ranks to processes

  // Waits until all ranks have called it. In every collective, `what` is the label of the call: all
  // ranks must pass the same one, and errors contain it.
  virtual void barrier(std::string_view what = "barrier") = 0;

  // Work that one rank of each process does for the whole process. It runs after all ranks of the
  // process have arrived and before any of them continues. If it throws, the call throws the same
  // exception in that rank and Aborted in the others.
  using OnLastArrival = std::function<void()>;
  // Waits until all ranks of this process have called it.
  virtual void local_barrier(std::string_view what, const OnLastArrival& on_last_arrival = {}) = 0;

  // A split barrier of the ranks of one process. arrive() does not wait. wait_for_arrivals()
  // returns once every rank has called arrive() as often as this rank has, immediately if they
  // already have. A rank that has left or finished its run counts as arrived.
  virtual void arrive() = 0;
  virtual void wait_for_arrivals() = 0;  // See arrive().

  // Returns the bytes that each rank passes, by rank. The result is valid until this rank's next
  // collective has returned. If `on_last_arrival` is not empty, one rank of each process calls it
  // with the same bytes.
  using OnceWith = std::function<void(std::span<const Bytes>)>;
  // See OnceWith.
  virtual std::vector<Bytes> all_gather(Bytes mine, std::string_view what,
                                        const OnceWith& on_last_arrival = {}) = 0;

  // Returns the bytes that each rank of this process passes, by local rank; otherwise like
  // all_gather().
  virtual std::vector<Bytes> local_gather(Bytes mine, std::string_view what,
                                          const OnceWith& on_last_arrival) = 0;

  // A split all_to_all with one message to each rank of other processes; messages to ranks of this
  // process are ignored. post_to_processes() returns without waiting for other processes, and the
  // messages may be changed afterwards. collect_posted() takes the number that post_to_processes()
  // returned and returns the received messages by rank, empty for ranks of this process.
  virtual int64_t post_to_processes(std::span<const Bytes> send, std::string_view what) = 0;
  // See post_to_processes().
  virtual std::vector<Bytes> collect_posted(int64_t posted, std::string_view what) = 0;

  // A split all_gather: post_gather() does not wait for other processes. One rank of each process
  // calls it on behalf of all its ranks (from OnLastArrival or OnceWith); `mine` holds the messages
  // of the local ranks.
  virtual int64_t post_gather(std::span<const Bytes> mine, std::string_view what) = 0;
  // Returns the messages by rank, including those of this process.
  virtual std::vector<std::vector<std::byte>> collect_gather(int64_t posted) = 0;

  // Sends messages to every rank and returns the received ones, by rank. Every rank sends the same
  // number k >= 1 of messages to each rank: send[k * r] to send[k * r + k - 1] go to rank r, and
  // the result has the messages from rank r at the same positions. The sent bytes must not change,
  // and the result is valid, until this rank's next collective has returned. Throws ValueError if
  // send.size() is not a positive multiple of size().
  virtual std::vector<Bytes> all_to_all(std::span<const Bytes> send,
                                        std::string_view what = "all_to_all") = 0;

  // Sums `pieces`, arrays of the same sizes in all ranks, over the ranks and distributes the sums.
  // In the rank that owns a part, it calls consume(i, begin, part) with the sum of the elements
  // [begin, begin + part.size()) of pieces[i]. Every element is consumed once, by one rank. Returns
  // after all ranks of this process have consumed their parts and, unless one of them threw,
  // `on_last_arrival` has run.
  using Consume = std::function<void(size_t piece, int64_t begin, std::span<const float> part)>;
  // See Consume.
  virtual void reduce_scatter(std::span<const std::span<const float>> pieces,
                              const Consume& consume,
                              const OnLastArrival& on_last_arrival = {}) = 0;

  // Works as reduce_scatter(), but each rank attaches bytes. Before anything is consumed, one rank
  // of each process calls `accept` with the attachments by rank. If it returns false, nothing is
  // consumed, `on_last_arrival` does not run, and the call returns false. `accept` must return the
  // same in all processes. Ranks that know that the sums will be rejected pass no pieces.
  struct Attachment {
    Bytes mine;                                          // the message of this rank
    std::function<bool(std::span<const Bytes>)> accept;  // called with those of all ranks
  };
  // See Attachment.
  virtual bool reduce_scatter_if(std::span<const std::span<const float>> pieces,
                                 const Attachment& attachment, const Consume& consume,
                                 const OnLastArrival& on_last_arrival) = 0;

  // Returns the range [first, end) that reduce_scatter() assigns to the ranks of this process, for
  // pieces of `total` elements together.
  virtual std::pair<int64_t, int64_t> local_shard(int64_t total) const = 0;

  // Copies the parts of `pieces` to all processes after each rank has written the parts that
  // reduce_scatter() assigns to it. The ranks of one process pass the same memory. With a single
  // process the call therefore does nothing and does not wait.
  virtual void all_gather_shards(std::span<const std::span<float>> pieces) = 0;

  // Stops the ranks that wait in a collective or call one later: they throw Aborted.
  virtual void abort(const std::string& why) noexcept = 0;
  // Declares that this rank makes no further call until the next run.
  virtual void leave() noexcept = 0;

  // Returns the traffic since the last reset. traffic() counts what this process sent to other
  // processes. traffic_of_rank() counts what a rank of this process sent to all other ranks, which
  // is what it would send if every rank were a process. Must not be called while replicas run.
  virtual TrafficByKind traffic() const = 0;
  virtual TrafficByKind traffic_of_rank(int rank) const = 0;  // See traffic().
  virtual void reset_traffic() = 0;                           // Sets all counts to 0.
};

// Sets values[i] to the sum of values[i] over the ranks, in every rank. Collective.
void all_reduce_sum(Communicator& communicator, std::span<float> values);

// Reinterprets the bytes of a collective as elements of type T.
template <class T>
std::span<const T> as_elements(Bytes bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
// Reinterprets elements as the bytes of a collective.
template <class T>
Bytes as_bytes_of(std::span<const T> elements) {
  return std::as_bytes(elements);
}

// Returns a communicator of one rank, for programs without a strategy of several replicas.
std::shared_ptr<Communicator> make_self_communicator();

}  // namespace keel::distribute
