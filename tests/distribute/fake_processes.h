// Processes of one job that are threads of this process, to test jobs without MPI.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

// A job of `size` processes.
class FakeJob {
 public:
  explicit FakeJob(int size) {
    for (int p = 0; p < size; ++p) processes_.push_back(std::make_unique<Process>(*this, p));
  }

  // Runs fn in every process. Returns the message of each process's exception, "" if it threw none.
  std::vector<std::string> run(const std::function<void(ProcessGroup&)>& fn) {
    std::vector<std::string> errors(processes_.size());
    std::vector<std::jthread> threads;
    for (size_t p = 0; p < processes_.size(); ++p) {
      threads.emplace_back([&, p] {
        try {
          fn(*processes_[p]);
        } catch (const std::exception& error) {
          errors[p] = error.what();
          processes_[p]->abort("has ended");
        }
      });
    }
    threads.clear();
    return errors;
  }

  // Returns how often the process of a group passed by run() has waited.
  static int64_t waits(const ProcessGroup& group) {
    return dynamic_cast<const Process&>(group).waits();
  }

 private:
  struct alignas(16) Chunk {
    std::byte bytes[16];
  };

  class Process final : public ProcessGroup {
   public:
    Process(FakeJob& job, int rank) : job_(job), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(job_.processes_.size()); }
    Traffic sent() const override { return {}; }

    // Returns how often this process has waited for others. A post counts only if it was collected
    // immediately.
    int64_t waits() const { return waits_; }

    int64_t post(std::string_view what, std::span<const Parts> send) override {
      const int64_t before = waits_;
      last_posted_ = ProcessGroup::post(what, send);
      waits_ = before;
      return last_posted_;
    }
    std::vector<Parts> collect(int64_t posted) override {
      if (posted == last_posted_) ++waits_;
      return ProcessGroup::collect(posted);
    }
    void notify(std::string_view what) override {
      const int64_t before = waits_;
      ProcessGroup::notify(what);
      waits_ = before;
    }

    std::vector<Parts> exchange(std::string_view what, std::span<const Parts> send) override {
      ++waits_;
      last_posted_ = 0;
      send_ = send;
      job_.meet(rank_, std::string(what));
      turn_ = 1 - turn_;
      copies_[turn_].clear();
      std::vector<Parts> received(size());
      for (int p = 0; p < size(); ++p) {
        if (p == rank_) continue;
        for (const Bytes& part : job_.processes_[p]->send_[rank_]) {
          std::vector<Chunk>& copy = copies_[turn_].emplace_back(part.size() / sizeof(Chunk) + 1);
          std::ranges::copy(part, copy[0].bytes);
          received[p].emplace_back(copy[0].bytes, part.size());
        }
      }
      job_.meet(rank_, std::string(what));
      return received;
    }

    void abort(const std::string& why) noexcept override {
      job_.fail(str("rank ", rank_, " failed: ", why));
    }

   private:
    FakeJob& job_;
    const int rank_;
    std::span<const Parts> send_;
    std::vector<std::vector<Chunk>> copies_[2];
    int turn_ = 0;
    int64_t waits_ = 0, last_posted_ = 0;
  };

  void meet(int rank, const std::string& what) {
    std::unique_lock lock(mutex_);
    if (why_.empty() && here_ > 0 && what_ != what) {
      why_ = str("rank ", rank, " is in ", what, " while others are in ", what_);
      changed_.notify_all();
    }
    if (!why_.empty()) throw Aborted(why_);
    what_ = what;
    if (++here_ == static_cast<int>(processes_.size())) {
      here_ = 0;
      ++generation_;
      changed_.notify_all();
      return;
    }
    const int mine = generation_;
    changed_.wait(lock, [&] { return generation_ != mine || !why_.empty(); });
    if (generation_ == mine) throw Aborted(why_);
  }

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (why_.empty()) why_ = why;
    changed_.notify_all();
  }

  std::mutex mutex_;  // guards all members below
  std::condition_variable changed_;
  std::string what_, why_;
  int here_ = 0;
  int generation_ = 0;
  std::vector<std::unique_ptr<Process>> processes_;
};

}  // namespace keel::distribute
