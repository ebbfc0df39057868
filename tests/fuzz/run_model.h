// Runs the models that fuzzed files describe.
#pragma once

#include <keel/layers/training/model.h>

namespace keel::fuzz {

// Calls the model with a batch of two rows, if it declares dense inputs of moderate size, and
// compiles and runs its serving plan. Both must give tensors or throw an error of the library.
void run_model(const ModelHandle& model);

}  // namespace keel::fuzz
