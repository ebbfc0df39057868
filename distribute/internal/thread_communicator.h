// ThreadCommunicator: the collectives of replicas that run as threads in one or several processes.
//
// Replicas of a process synchronize and read each other's memory in place. With several processes,
// the last replica of a process to arrive exchanges data with the other processes before any
// replica of its process continues. A waiting replica gives its slot to another one
// (replica_scheduler.h).
#pragma once

#include <functional>
#include <memory>

#include <keel/distribute/communicator.h>
#include <keel/distribute/internal/placement.h>
#include <keel/distribute/internal/replica_scheduler.h>
#include <keel/distribute/internal/replica_tree.h>

namespace keel::distribute {

// The collectives of a TPUStrategy's replicas.
class ThreadCommunicator final : public Communicator {
 public:
  // The replicas are placed on the processes of `group`.
  ThreadCommunicator(Placement placement, ProcessGroup& group, ReplicaScheduler& scheduler);
  ~ThreadCommunicator() override;

  int rank() const override;
  int size() const override { return placement_.replicas(); }
  const Placement& placement() const override { return placement_; }
  void barrier(std::string_view what) override;
  void local_barrier(std::string_view what, const OnLastArrival& on_last_arrival) override;
  void arrive() override;
  void wait_for_arrivals() override;
  std::vector<Bytes> all_gather(Bytes mine, std::string_view what,
                                const OnceWith& on_last_arrival) override;
  std::vector<Bytes> local_gather(Bytes mine, std::string_view what,
                                  const OnceWith& on_last_arrival) override;
  int64_t post_to_processes(std::span<const Bytes> send, std::string_view what) override;
  std::vector<Bytes> collect_posted(int64_t posted, std::string_view what) override;
  int64_t post_gather(std::span<const Bytes> mine, std::string_view what) override;
  std::vector<std::vector<std::byte>> collect_gather(int64_t posted) override;
  std::vector<Bytes> all_to_all(std::span<const Bytes> send, std::string_view what) override;
  void reduce_scatter(std::span<const std::span<const float>> pieces, const Consume& consume,
                      const OnLastArrival& on_last_arrival) override;
  bool reduce_scatter_if(std::span<const std::span<const float>> pieces,
                         const Attachment& attachment, const Consume& consume,
                         const OnLastArrival& on_last_arrival) override;
  std::pair<int64_t, int64_t> local_shard(int64_t total) const override {
    const Elements here = owned_by_process(placement_.process, total);
    return {here.begin, here.end};
  }
  void all_gather_shards(std::span<const std::span<float>> pieces) override;
  void abort(const std::string& why) noexcept override;
  void leave() noexcept override;
  TrafficByKind traffic() const override;
  TrafficByKind traffic_of_rank(int rank) const override;
  void reset_traffic() override;

  // Prepares for the next run. Every local rank must have left or thrown.
  void reset();
  // Notifies the other processes that all local ranks have left the run. Called by the thread that
  // started the run. If replicas of other processes still wait in a collective of the run, the next
  // exchange throws RuntimeError.
  void finish();

 private:
  struct Rendezvous;
  struct Call;
  using Parts = ProcessGroup::Parts;
  // Waits until every local rank has made the same call. Publishes `offer` to the others. The last
  // rank to arrive runs `on_last_arrival` before any rank continues.
  void arrive_and_wait(const Call& call, const void* offer,
                       const OnLastArrival& on_last_arrival = {});
  void exchange(const Call& call, std::span<const Parts> send, Traffic& traffic);
  int local_rank() const { return rank() - placement_.first_local(); }
  bool alone() const { return placement_.processes() == 1; }

  // A range of the elements of all pieces, concatenated in order.
  struct Elements {
    int64_t begin = 0, end = 0;
    int64_t size() const { return end - begin; }
  };
  Elements owned_by(int first_rank, int end_rank, int64_t total) const;
  Elements owned_by_process(int process, int64_t total) const;
  Elements local_part(Elements elements) const;  // divided among the local ranks

  // Steps of the collectives with several processes.
  std::vector<Parts> messages_for_processes(size_t turn) const;
  std::vector<Bytes> by_rank(std::span<const Parts> incoming, size_t first_part, size_t turn) const;
  void make_room_for_sums(int64_t total);
  void sum_for_processes(std::span<const std::span<const float>> pieces, int64_t total);
  bool exchange_sums(const Call& call, int64_t total, const Attachment* attachment, size_t turn);
  void post_attachment(const Attachment& attachment, size_t turn);
  bool sum_and_consume(std::span<const std::span<const float>> pieces, const Attachment* attachment,
                       const Consume& consume, const OnLastArrival& on_last_arrival);
  void point_at_local(std::span<Summand> summands, size_t piece, int64_t at) const;
  void point_at_incoming(std::span<Summand> summands, int64_t offset, int64_t total) const;
  void write_from_process(int process, std::span<const std::span<float>> pieces, int64_t total);

  const Placement placement_;
  ProcessGroup& group_;
  ReplicaScheduler& scheduler_;
  const std::unique_ptr<Rendezvous> rendezvous_;
};

}  // namespace keel::distribute
