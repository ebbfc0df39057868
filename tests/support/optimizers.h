// Properties of optimizers.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/optimizers/embedding/embedding_optimizer.h>
#include <keel/optimizers/optimizer.h>

namespace keel::testing_support {

// The names of the slots, in the optimizer's order.
std::vector<std::string> slot_names(const OptimizerHandle& optimizer);
std::vector<std::string> embedding_slot_names(const EmbeddingOptimizer& optimizer);

// Expects that an embedding optimizer with these options is a ValueError.
template <class Options>
void expect_invalid(const Options& options) {
  EXPECT_THROW(EmbeddingOptimizer{options}, ValueError);
}

}  // namespace keel::testing_support
