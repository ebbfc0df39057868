// Communicator: collectives among the replicas of one strategy, in whatever processes they are.
//
// all_to_all, barrier, reduce_scatter and share are collective: all ranks call them, in the same
// order. A rank that calls another one, or the same by another label, or that has left, is a
// RuntimeError in all of them and never a wait. Sums over ranks are balanced trees over the rank,
// so results depend neither on timing nor on how ranks are placed on processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "distribute/placement.h"
#include "distribute/process_group.h"

namespace keel::distribute {

// What the kinds of collectives have sent, without headers; empty messages do not count.
struct TrafficByKind {
  Traffic all_to_all = {}, reduce_scatter = {}, share = {};
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // of the calling thread
  virtual int size() const = 0;
  virtual const Placement& placement() const = 0;  // of the ranks on processes

  // `what` is the label of a call, which ranks must agree on and which stands in errors.
  virtual void barrier(std::string_view what = "barrier") = 0;

  // Sends send[r] to rank r; returns what each rank sent here, by rank. What was sent must stay
  // as it is, and the result is valid, until this rank's next collective has returned.
  virtual std::vector<Bytes> all_to_all(std::span<const Bytes> send,
                                        std::string_view what = "all_to_all") = 0;

  // Sums arrays of the same sizes over the ranks and deals the sums out: consume(i, begin, part)
  // is called in the rank that owns that part, with the sum of elements [begin, begin +
  // part.size()) of pieces[i]. Every element is consumed once, by one rank. Returns when all
  // ranks of this process have consumed.
  using Consume = std::function<void(size_t piece, int64_t begin, std::span<const float> part)>;
  virtual void reduce_scatter(std::span<const std::span<const float>> pieces,
                              const Consume& consume) = 0;

  // Of `total` elements of all pieces together, [first, end): those that reduce_scatter deals to
  // the ranks of this process.
  virtual std::pair<int64_t, int64_t> dealt_here(int64_t total) const = 0;

  // After each rank has written the parts of `pieces` that reduce_scatter would deal to it: makes
  // them known in all processes. The ranks of one process pass the same memory, so that in a job of
  // one there is nothing to do, and nobody is waited for.
  virtual void share(std::span<const std::span<float>> pieces) = 0;

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
