#include "tests/support/optimizers.h"

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/framework/update_rule.h>

namespace keel::testing_support {
namespace {

std::vector<std::string> names_of(const auto& slots) {
  std::vector<std::string> out;
  for (const Slot& slot : slots) out.push_back(slot.name);
  return out;
}

}  // namespace

std::vector<std::string> slot_names(const OptimizerHandle& optimizer) {
  return names_of(optimizer->slot_specs());
}

std::vector<std::string> embedding_slot_names(const EmbeddingOptimizer& optimizer) {
  return names_of(optimizer->rule->slots());
}

}  // namespace keel::testing_support
