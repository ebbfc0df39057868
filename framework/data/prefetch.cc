#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <keel/framework/data/internal/stage.h>

namespace keel::data {
namespace {

class PrefetchIterator : public BlockIterator {
 public:
  PrefetchIterator(const Stage& input, const Run& run, int64_t buffer_size)
      : outer_stop_(run.stop), buffer_size_(buffer_size) {
    Run inner = run;
    inner.stop = stop_.get_token();
    input_ = input.iterate(inner);
    thread_ = std::jthread([this] { produce(); });
  }
  // The stop request ends sources and waits. The members are destroyed after thread_, which joins
  // the thread first.
  ~PrefetchIterator() override { stop_.request_stop(); }

  std::optional<Block> next(int64_t most) override {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, outer_stop_, [this] { return !queue_.empty() || ended_; });
    if (queue_.empty()) {
      if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
      return std::nullopt;
    }
    Block block = std::move(queue_.front());
    queue_.pop_front();
    if (block.count() > most) {
      queue_.push_front(block.slice(most, block.count()));
      block = block.slice(0, most);
    }
    queued_ -= block.count();
    emptied_.notify_one();
    return block;
  }

 private:
  void produce() {
    std::exception_ptr error;
    try {
      while (const int64_t room = wait_for_room()) {
        std::optional<Block> block = input_->next(std::min(room, kBlockRows));
        if (!block) break;
        push(prepared(*std::move(block)));
      }
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    ended_ = true;
    filled_.notify_one();
  }

  // Returns the number of elements that may be produced now, or 0 to stop.
  int64_t wait_for_room() {
    std::unique_lock lock(mutex_);
    emptied_.wait(lock, stop_.get_token(), [this] { return queued_ < buffer_size_; });
    return stop_.stop_requested() ? 0 : buffer_size_ - queued_;
  }

  // Gathers rows here, because this copying is the work to be done ahead of time.
  static Block prepared(Block block) {
    if (block.is_whole()) return block;
    const int64_t count = block.count();
    return Block::rows(std::make_shared<const Tensors>(block.gathered()), 0, count);
  }

  void push(Block block) {
    const std::lock_guard lock(mutex_);
    queued_ += block.count();
    queue_.push_back(std::move(block));
    filled_.notify_one();
  }

  const std::stop_token outer_stop_;
  const int64_t buffer_size_;
  std::stop_source stop_;
  std::unique_ptr<BlockIterator> input_;  // used only by the thread

  std::mutex mutex_;  // guards the next six members
  std::condition_variable_any filled_;
  std::condition_variable_any emptied_;
  std::deque<Block> queue_;
  int64_t queued_ = 0;  // elements in the queue
  std::exception_ptr error_;
  bool ended_ = false;  // the thread will add no more elements

  std::jthread thread_;  // last, so that it is joined before the members that it uses are destroyed
};

class PrefetchStage : public Stage {
 public:
  PrefetchStage(StagePtr input, int64_t buffer_size)
      : Stage(std::move(input)), buffer_size_(buffer_size) {}
  std::unique_ptr<BlockIterator> iterate(const Run& run) const override {
    return std::make_unique<PrefetchIterator>(input(), run, buffer_size_);
  }
  int64_t unbatched_cardinality() const override { return input().unbatched_cardinality(); }

 private:
  const int64_t buffer_size_;
};

}  // namespace

StagePtr prefetch_stage(StagePtr input, int64_t buffer_size) {
  if (buffer_size < 1) {
    throw ValueError("Dataset.prefetch: buffer_size must be at least 1, received ", buffer_size);
  }
  return std::make_shared<PrefetchStage>(std::move(input), buffer_size);
}

}  // namespace keel::data
