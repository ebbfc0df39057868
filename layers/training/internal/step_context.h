// StepContext: what every replica knows about the step that it runs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>

namespace keel {

// Does not change while the step runs.
struct StepContext {
  bool training = true;          // calls Model::train_step; false calls Model::test_step
  const char* caller = "Model";  // prefix of error messages, such as "Model.fit"
  std::optional<int64_t> epoch = {};
  int64_t step = 0;
  // If true, a step whose loss is NaN does not throw; it leaves the trained weights and the metrics
  // unchanged.
  bool tolerates_nan = false;
  int64_t rows = 0;  // rows of the global batch; 0 outside of steps
};
// Prints "Model.fit: epoch 1, step 3"; printed numbers count from 1.
std::ostream& operator<<(std::ostream& out, const StepContext& context);

}  // namespace keel
