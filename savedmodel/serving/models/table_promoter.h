// TablePromoter: moves the mapped tables of loaded versions to memory in the background.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include <keel/savedmodel/mapped/mapped_tables.h>

namespace keel::serving {

// One thread of the lowest priority, which promotes the tables of one version after the other
// (MappedTables::promote). Thread safe.
class TablePromoter {
 public:
  TablePromoter();
  // Stops after the current piece.
  ~TablePromoter();
  TablePromoter(const TablePromoter&) = delete;
  TablePromoter& operator=(const TablePromoter&) = delete;

  // Promotes the tables of a version as long as it is alive.
  void add(std::shared_ptr<MappedTables> tables, std::weak_ptr<const void> version);

 private:
  struct Job {
    std::shared_ptr<MappedTables> tables;
    std::weak_ptr<const void> version;
  };
  void run();

  std::mutex mutex_;  // guards the following two
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace keel::serving
