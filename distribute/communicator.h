// Communicator: collectives among the replicas of one strategy, in whatever processes they are.
//
// Barriers, all_gather, all_to_all, reduce_scatter and share are collective: all ranks call them,
// in the same order. A rank that calls another one, or the same by another label, or that has left,
// is a RuntimeError in all of them and never a wait. Sums over ranks are balanced trees over the
// rank, so results depend neither on timing nor on how ranks are placed on processes.
//
// Where more replicas are on a core than one, each meeting of theirs makes the core go through all
// of them. So all_gather and all_to_all are one meeting each, and what is to be done once for all
// can be given to the meeting that comes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <keel/distribute/placement.h>
#include <keel/distribute/process_group.h>

namespace keel::distribute {

// What the kinds of collectives have sent, without headers; empty messages do not count.
struct TrafficByKind {
  Traffic all_to_all = {}, reduce_scatter = {}, all_gather_shards = {};
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // of the calling thread
  virtual int size() const = 0;
  virtual const Placement& placement() const = 0;  // of the ranks on processes

  // `what` is the label of a call, which ranks must agree on and which stands in errors.
  virtual void barrier(std::string_view what = "barrier") = 0;

  // What one rank of each process does for all of that process: it runs when they have come and
  // before any goes on. If it throws, so does the call in that rank, and the others throw Aborted.
  using OnLastArrival = std::function<void()>;
  // Of the ranks of one process.
  virtual void local_barrier(std::string_view what, const OnLastArrival& on_last_arrival = {}) = 0;

  // A barrier of the ranks of one process in two halves: wait_for_arrivals returns when all have
  // arrived as often as this rank has. At once if they have met since. A rank that has left, or
  // the end of a run, counts as arrived.
  virtual void arrive() = 0;
  virtual void wait_for_arrivals() = 0;

  // What each rank passes, by rank. The result is valid until this rank's next collective has
  // returned. `on_last_arrival`, of one rank in each process, is given the same, if it is not
  // empty.
  using OnceWith = std::function<void(std::span<const Bytes>)>;
  virtual std::vector<Bytes> all_gather(Bytes mine, std::string_view what,
                                        const OnceWith& on_last_arrival = {}) = 0;

  // What each rank of this process passes, by local rank; otherwise as all_gather.
  virtual std::vector<Bytes> local_gather(Bytes mine, std::string_view what,
                                          const OnceWith& on_last_arrival) = 0;

  // all_to_all in two halves, of one message to each rank of other processes; those to ranks of
  // this process are not read. post_to_processes returns before anything has come, and what was
  // sent may change from then on; collect_posted, given what that has returned, returns what came,
  // by rank, and empty from ranks of this process.
  virtual int64_t post_to_processes(std::span<const Bytes> send, std::string_view what) = 0;
  virtual std::vector<Bytes> collect_posted(int64_t posted, std::string_view what) = 0;

  // all_gather in two halves, between which the other processes are not waited for. For what one
  // rank of each process does for all of it (Once, OnceWith): `mine` are those of the local ranks.
  virtual int64_t post_gather(std::span<const Bytes> mine, std::string_view what) = 0;
  // By rank, those of this process too.
  virtual std::vector<std::vector<std::byte>> collect_gather(int64_t posted) = 0;

  // Sends send[r] to rank r; returns what each rank sent here, by rank. Any number of messages to
  // each, the same from all: of k, those to rank r begin at send[k * r], those from it likewise.
  // What was sent must stay as it is, and the result is valid, until this rank's next collective
  // has returned.
  virtual std::vector<Bytes> all_to_all(std::span<const Bytes> send,
                                        std::string_view what = "all_to_all") = 0;

  // Sums arrays of the same sizes over the ranks and deals the sums out: consume(i, begin, part)
  // is called in the rank that owns that part, with the sum of elements [begin, begin +
  // part.size()) of pieces[i]. Every element is consumed once, by one rank. Returns when all
  // ranks of this process have consumed and, if that has not failed, `on_last_arrival` is done.
  using Consume = std::function<void(size_t piece, int64_t begin, std::span<const float> part)>;
  virtual void reduce_scatter(std::span<const std::span<const float>> pieces,
                              const Consume& consume,
                              const OnLastArrival& on_last_arrival = {}) = 0;

  // The same, with what each rank attaches: one rank of each process is given the attachments by
  // rank before anything is consumed, and says whether the sums are wanted. If not, nothing is
  // consumed, `on_last_arrival` does not run, and this returns false. All processes must decide
  // alike. Those that are known not to want the sums pass no pieces.
  struct Attachment {
    Bytes mine;
    std::function<bool(std::span<const Bytes>)> accept;
  };
  virtual bool reduce_scatter_if(std::span<const std::span<const float>> pieces,
                                 const Attachment& attachment, const Consume& consume,
                                 const OnLastArrival& on_last_arrival) = 0;

  // Of `total` elements of all pieces together, [first, end): those that reduce_scatter deals to
  // the ranks of this process.
  virtual std::pair<int64_t, int64_t> local_shard(int64_t total) const = 0;

  // After each rank has written the parts of `pieces` that reduce_scatter would deal to it: makes
  // them known in all processes. The ranks of one process pass the same memory, so that in a job of
  // one there is nothing to do, and nobody is waited for.
  virtual void all_gather_shards(std::span<const std::span<float>> pieces) = 0;

  // Stops the ranks that wait in a collective, and those that will: they throw Aborted.
  virtual void abort(const std::string& why) noexcept = 0;
  // This rank makes no further call until the next run.
  virtual void leave() noexcept = 0;

  // Since the last reset: what has left this process for others, and what has left rank `rank`,
  // of this process, for other ranks wherever they are; that is what it would send if every rank
  // was a process. Not while replicas run.
  virtual TrafficByKind traffic() const = 0;
  virtual TrafficByKind traffic_of_rank(int rank) const = 0;
  virtual void reset_traffic() = 0;
};

// values[i] = sum over ranks of values[i], in every rank.
void all_reduce_sum(Communicator& communicator, std::span<float> values);

// The elements of all_to_all as what they are.
template <class T>
std::span<const T> as_elements(Bytes bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}
template <class T>
Bytes as_bytes_of(std::span<const T> elements) {
  return std::as_bytes(elements);
}

// A communicator of one rank, for programs without a strategy of several replicas.
std::shared_ptr<Communicator> make_self_communicator();

}  // namespace keel::distribute
