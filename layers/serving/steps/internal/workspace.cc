#include <keel/layers/serving/steps/internal/workspace.h>

#include <functional>
#include <thread>

#include <keel/framework/base/internal/allocator.h>

namespace keel {
namespace {

size_t bytes_of(int64_t floats) { return static_cast<size_t>(floats) * sizeof(float); }

// Starts the search at a slot that depends on the thread, so that threads rarely contend and
// usually find the workspace that they returned.
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
    // The plain load avoids writing to the cache lines of empty slots. The acquire pairs with the
    // release in release(), which publishes the workspace's contents.
    if (slot.load(std::memory_order_relaxed) == nullptr) continue;
    Workspace* const found = slot.exchange(nullptr, std::memory_order_acquire);
    if (found != nullptr) return std::unique_ptr<Workspace>(found);
  }
  return nullptr;
}

void WorkspacePool::release(std::unique_ptr<Workspace> workspace) {
  const size_t first = first_slot();
  for (size_t i = 0; i < kKept; ++i) {
    std::atomic<Workspace*>& slot = slots_[(first + i) % kKept].workspace;
    Workspace* empty = nullptr;
    if (slot.load(std::memory_order_relaxed) == nullptr &&
        slot.compare_exchange_strong(empty, workspace.get(), std::memory_order_release,
                                     std::memory_order_relaxed)) {
      static_cast<void>(workspace.release());  // owned by the slot now
      return;
    }
  }
}

}  // namespace keel
