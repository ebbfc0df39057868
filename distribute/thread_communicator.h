// The communicator of replicas that are threads of this process, and the turns they take on the
// worker threads' processors.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "distribute/communicator.h"

namespace keel::distribute {

// Permits to compute. A replica holds one while it runs and gives it back while it waits for
// others, so that any number of replicas keep `permits` cores busy and no more.
class WorkerPermits {
 public:
  explicit WorkerPermits(int permits) : free_(permits) {}
  void acquire();
  void release();

 private:
  std::mutex mutex_;  // guards free_
  std::condition_variable freed_;
  int free_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(int replicas, std::shared_ptr<WorkerPermits> permits);
  ~ThreadCommunicator() override;

  int rank() const override;
  int size() const override;
  void barrier() override;
  std::vector<Bytes> all_to_all(std::span<const Bytes> send) override;
  void reduce_scatter(std::span<const std::span<const float>> pieces,
                      const Consume& consume) override;
  void share(std::span<const std::span<float>> pieces) override;
  void abort(const std::string& why) noexcept override;
  void leave() noexcept override;

  // Ready for the next run; every rank has left or thrown.
  void reset();

 private:
  struct Meeting;
  // Waits until every rank is here with the same `what`. Publishes `offer` to the others.
  void meet(const char* what, const void* offer);

  const int replicas_;
  const std::shared_ptr<WorkerPermits> permits_;
  const std::unique_ptr<Meeting> meeting_;
};

}  // namespace keel::distribute
