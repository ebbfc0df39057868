// The optimizer of a reference case as the library's own.
#pragma once

#include <functional>

#include <keel/optimizers/embedding/embedding_optimizer.h>

#include "tests/conformance/case_fields.h"

namespace keel::conformance {

// True for the types that only the V1 engine takes.
bool is_v1_type(const std::string& type);

// `optimizer`: {"type", parameters under their public names, "clip_gradient_min" and
// "clip_gradient_max" for clipvalue}. ValueError naming an unknown type or parameter.
EmbeddingOptimizer table_optimizer_of(const Config& optimizer,
                                      std::function<double()> learning_rate);
// Of a V1 type, whose rate is the table's.
EmbeddingOptimizer v1_parameters_of(const Config& optimizer);

}  // namespace keel::conformance
