// ResumePoint: the epoch and step at which fit resumes.
#pragma once

#include <cstdint>
#include <functional>

namespace keel {

// Set by a callback to make fit resume.
struct ResumePoint {
  int64_t epoch = 0;  // first epoch to run; may be one past the last epoch
  int64_t step = 0;   // first step of that epoch; the batches before it are skipped
  // Restores all state. Called once the model is built. If `step` > 0, it is called after the
  // callbacks' on_epoch_begin(); otherwise before it.
  std::function<void()> restore = {};
};

}  // namespace keel
