// Replays one record of each section. Each function reads all fields that it supports from
// `fields`, and passes on the library's errors.
#pragma once

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

void replay_schedule(Fields& fields, Comparison& result);
// Applies the problem's gradients to its variables.
void replay_optimizer(Fields& fields, const Config& problem, Comparison& result);
void replay_loss(Fields& fields, Comparison& result);
void replay_metric(Fields& fields, Comparison& result);
void replay_activation(Fields& fields, Comparison& result);
void replay_layer(Fields& fields, Comparison& result);
void replay_regularizer(Fields& fields, Comparison& result);
void replay_constraint(Fields& fields, Comparison& result);
void replay_initializer(Fields& fields, Comparison& result);
// Calls a function of keel::keras_ops.
void replay_op(Fields& fields, Comparison& result);

// Returns {"class_name", "config"} of a record.
Config class_and_config(Fields& fields);

}  // namespace keel::conformance
