// The state in which the ranks of a ThreadCommunicator synchronize. Private to its sources.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include <keel/distribute/internal/thread_communicator.h>

namespace keel::distribute {

// Returns the number of elements of all pieces.
template <class Pieces>
int64_t total_size(const Pieces& pieces) {
  int64_t total = 0;
  for (const auto& piece : pieces) total += static_cast<int64_t>(piece.size());
  return total;
}

// Adds a message to the traffic, unless it is empty.
inline void count_sent(Traffic& traffic, int64_t bytes) {
  traffic.bytes_sent += bytes;
  traffic.messages += bytes > 0 ? 1 : 0;
}

// Throws RuntimeError, naming the call and the sender, unless a message has the expected size.
inline void check_size(bool as_expected, const char* what, int process) {
  if (!as_expected) {
    throw RuntimeError(what, ": the arrays of rank ", process,
                       " have different sizes; all processes must pass arrays of the same sizes");
  }
}

// A collective call: its kind and its label. All ranks must make equal calls.
struct ThreadCommunicator::Call {
  std::string_view kind, what;
  bool operator==(const Call&) const = default;
  std::string text() const { return kind == what ? str(kind) : str(kind, " '", what, "'"); }
};

// The shared state of the local ranks. The members up to `offers` are guarded by the lock of
// the scheduler.
struct ThreadCommunicator::Rendezvous {
  // Data that a rank publishes for others. They may read it until all ranks have passed the next
  // rendezvous, so each rank alternates between two posts.
  struct Post {
    std::vector<Bytes> sent;
    std::vector<std::byte> kept;
  };
  struct Rank {
    std::array<Post, 2> posts;
    TrafficByKind traffic;
  };

  Call call;                 // the call of the ranks that are here now
  std::vector<int> waiting;  // local ranks that wait in arrive_and_wait()
  std::vector<int> arrived;  // local ranks that wait in wait_for_arrivals()
  int here = 0;
  int left = 0;
  uint64_t generation = 0;
  bool aborted = false;
  std::string why;
  std::vector<int64_t> arrivals;    // by local rank
  std::vector<const void*> offers;  // by local rank
  std::atomic<bool> consume_failed = false;

  // Written by the last rank to arrive. Only `sums` are written by all ranks, between two
  // rendezvous, each rank its own part.
  std::vector<Parts> incoming;   // by process: received in the last exchange
  std::vector<Parts> collected;  // by process: received in the last collect_posted()
  int64_t posted = 0;            // number of the last post_to_processes()
  std::map<int64_t, std::vector<std::vector<std::byte>>> own_gathers;  // by post_gather() number
  bool sums_are_wanted = true;
  std::vector<std::vector<float>> sums;  // by process: for the elements that it owns, one array
                                         // per whole subtree of the local replicas
  std::vector<std::vector<ReplicaRange>> subtrees;  // by process; constant
  TrafficByKind traffic;
  std::vector<Rank> ranks;  // by local rank

  bool all_have_arrived(int64_t times) const {
    return std::ranges::all_of(arrivals, [times](int64_t of) { return of >= times; });
  }
  void abort(const std::string& reason, ReplicaScheduler& scheduler) {
    aborted = true;
    why = str_or_empty(reason);
    wake(waiting, scheduler);
    wake(arrived, scheduler);
  }
  static void wake(std::vector<int>& sleepers, ReplicaScheduler& scheduler) {
    for (const int r : sleepers) scheduler.make_ready(r);
    sleepers.clear();
  }
};

}  // namespace keel::distribute
