#include <keel/savedmodel/serving/models/table_promoter.h>

#include <sched.h>
#include <utility>

namespace keel::serving {

TablePromoter::TablePromoter() : thread_([this] { run(); }) {}

TablePromoter::~TablePromoter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void TablePromoter::add(std::shared_ptr<MappedTables> tables, std::weak_ptr<const void> version) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({.tables = std::move(tables), .version = std::move(version)});
  }
  wake_.notify_one();
}

void TablePromoter::run() {
  // Requests come first: this thread runs only on processors that are otherwise idle.
  const sched_param priority = {};
  sched_setscheduler(0, SCHED_IDLE, &priority);
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job.tables->promote([&] {
      const std::lock_guard lock(mutex_);
      return !stopping_ && !job.version.expired();
    });
  }
}

}  // namespace keel::serving
