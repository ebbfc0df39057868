// Replays reference cases in which a table is trained, its values compared after each step.
#pragma once

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// All throw for fields, optimizers and slots that are unknown, and what the library throws.

// Kind "sparse_gradient": one step, the gradient of each row.
void replay_gradient(Fields& fields, Fields& expected, Comparison& result);
// Kind "training": several steps with given gradients of activations; the table and its slots.
void replay_training(Fields& fields, Fields& expected, Comparison& result);
// Kind "pipeline": one row that is looked up in every step; the activations that are seen.
void replay_pipeline(Fields& fields, Fields& expected, Comparison& result);

}  // namespace keel::conformance
