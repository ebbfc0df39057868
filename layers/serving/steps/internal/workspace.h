// Workspaces: memory of calls of a plan, handed from call to call without a lock. Private to plans.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <keel/layers/serving/steps/plan_step.h>

namespace keel {

// What one call at a time uses.
struct Workspace {
  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;
  // Room for `count` floats; what they held is lost.
  void reserve(int64_t count);

  float* floats = nullptr;
  int64_t size = 0;
  std::vector<TensorView> views;
  std::vector<TensorLike> tensors;
};

// As many as calls have run at once, up to kKept.
class WorkspacePool {
 public:
  WorkspacePool() = default;
  ~WorkspacePool();
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  std::unique_ptr<Workspace> take();  // null if none is free
  void give_back(std::unique_ptr<Workspace> workspace);

 private:
  static constexpr size_t kKept = 64;
  struct alignas(64) Slot {  // threads must not share a line
    std::atomic<Workspace*> workspace = nullptr;
  };
  std::array<Slot, kKept> slots_;
};

}  // namespace keel
