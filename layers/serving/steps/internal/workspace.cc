#include <keel/layers/serving/steps/internal/workspace.h>

#include <functional>
#include <thread>

#include <keel/framework/base/internal/allocator.h>

namespace keel {
namespace {

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

// A thread begins its search where it ended the last one, most likely.
size_t first_slot() { return std::hash<std::thread::id>()(std::this_thread::get_id()); }

}  // namespace

Workspace::~Workspace() {
  if (floats != nullptr) deallocate(floats, bytes_of(size));
}

void Workspace::reserve(int64_t count) {
  if (count <= size) return;
  auto* const grown = static_cast<float*>(allocate(bytes_of(count)));
  if (floats != nullptr) deallocate(floats, bytes_of(size));
  floats = grown;
  size = count;
}

WorkspacePool::~WorkspacePool() {
  for (Slot& slot : slots_) delete slot.workspace.load();
}

std::unique_ptr<Workspace> WorkspacePool::take() {
  const size_t first = first_slot();
  for (size_t i = 0; i < kKept; ++i) {
    std::atomic<Workspace*>& slot = slots_[(first + i) % kKept].workspace;
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    Workspace* const found = slot.exchange(nullptr, std::memory_order_acquire);
    if (found != nullptr) return std::unique_ptr<Workspace>(found);
  }
  return nullptr;
}

void WorkspacePool::give_back(std::unique_ptr<Workspace> workspace) {
  const size_t first = first_slot();
  for (size_t i = 0; i < kKept; ++i) {
    std::atomic<Workspace*>& slot = slots_[(first + i) % kKept].workspace;
    Workspace* empty = nullptr;
    if (slot.load(std::memory_order_relaxed) == nullptr &&
        slot.compare_exchange_strong(empty, workspace.get(), std::memory_order_release,
                                     std::memory_order_relaxed)) {
      static_cast<void>(workspace.release());  // the slot has it
      return;
    }
  }
}

}  // namespace keel
