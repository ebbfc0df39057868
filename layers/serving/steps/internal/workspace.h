// Workspaces: reusable memory for the calls of a plan, pooled without a lock. Private to plans.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

// Memory of one call at a time.
struct Workspace {
  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // Makes room for `count` floats; the previous contents are lost.
  void reserve(int64_t count);

  float* floats = nullptr;
  int64_t size = 0;
  std::vector<TensorView> views;
  std::vector<TensorLike> tensors;
};

// Keeps returned workspaces for later calls, at most kKept.
class WorkspacePool {
 public:
  WorkspacePool() = default;
  ~WorkspacePool();
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  std::unique_ptr<Workspace> take();  // null if none is available
  // Returns a workspace to the pool, or frees it if the pool is full.
  void release(std::unique_ptr<Workspace> workspace);

 private:
  static constexpr size_t kKept = 64;
  struct alignas(64) Slot {  // own cache line, to avoid false sharing between threads
    std::atomic<Workspace*> workspace = nullptr;
  };
  std::array<Slot, kKept> slots_;
};

}  // namespace keel
