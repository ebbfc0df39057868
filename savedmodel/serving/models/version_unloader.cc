#include <keel/savedmodel/serving/models/version_unloader.h>

#include <malloc.h>

namespace keel::serving {

VersionUnloader::VersionUnloader() : thread_([this] { run(); }) {}

VersionUnloader::~VersionUnloader() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void VersionUnloader::free(const ModelVersion* version) {
  {
    const std::lock_guard lock(mutex_);
    versions_.push_back(version);
  }
  wake_.notify_one();
}

void VersionUnloader::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || !versions_.empty(); });
    if (versions_.empty()) return;
    const ModelVersion* const version = versions_.front();
    versions_.pop_front();
    lock.unlock();
    const std::string model = version->model();
    const int64_t number = version->number();
    delete version;
    malloc_trim(0);
    if (on_free) on_free(model, number);
    lock.lock();
  }
}

}  // namespace keel::serving
