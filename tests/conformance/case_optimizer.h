// Converts the optimizer of a reference case to the library's.
#pragma once

#include <functional>

#include <keel/optimizers/embedding/embedding_optimizer.h>

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// Returns true for the types that only the V1 engine supports.
bool is_v1_type(const std::string& type);

// Converts an optimizer: {"type", parameters under their public names, "clip_gradient_min" and
// "clip_gradient_max" for clipvalue}. Throws ValueError, naming an unknown type or parameter.
EmbeddingOptimizer table_optimizer_of(const Config& optimizer,
                                      std::function<double()> learning_rate);
// Converts an optimizer of a V1 type. The learning rate is that of the table.
EmbeddingOptimizer v1_parameters_of(const Config& optimizer);

}  // namespace keel::conformance
