// Replays reference cases that train a table and compare its values after each step.
#pragma once

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// All functions throw for unknown fields, optimizers and slots, and pass on the library's errors.

// Replays the kind "sparse_gradient": one step; compares the gradient of each row.
void replay_gradient(Fields& fields, Fields& expected, Comparison& result);
// Replays the kind "training": several steps with given activation gradients; compares the table
// and its slots.
void replay_training(Fields& fields, Fields& expected, Comparison& result);
// Replays the kind "pipeline": every step looks up one row; compares the activations.
void replay_pipeline(Fields& fields, Fields& expected, Comparison& result);

}  // namespace keel::conformance
