// ResumePoint: where in its epochs a run of fit goes on.
#pragma once

#include <cstdint>
#include <functional>

namespace keel {

struct ResumePoint {
  int64_t epoch = 0;  // the first that runs; may be the one after the last
  int64_t step = 0;   // the first of that epoch; its data before are passed over
  // Called once the model is built, to set all state: in the midst of an epoch after the callbacks
  // have begun it, else before.
  std::function<void()> restore = {};
};

}  // namespace keel
