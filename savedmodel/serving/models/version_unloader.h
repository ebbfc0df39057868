// VersionUnloader: returns the memory of versions that are no longer used.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Frees versions after their last use, in a thread of its own. Outlives all handles of versions.
class VersionUnloader {
 public:
  VersionUnloader();
  // Frees what is left.
  ~VersionUnloader();
  VersionUnloader(const VersionUnloader&) = delete;
  VersionUnloader& operator=(const VersionUnloader&) = delete;

  // Deletes the version soon.
  void free(const ModelVersion* version);
  // Called with model and number after a version has been freed.
  std::function<void(const std::string&, int64_t)> on_free;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<const ModelVersion*> versions_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace keel::serving
