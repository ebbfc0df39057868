#include "tests/conformance/known_classes.h"

#include "framework/initializers.h"
#include "layers/activations.h"
#include "layers/constraints.h"
#include "layers/losses/loss.h"
#include "layers/metrics/metric.h"
#include "layers/registry.h"
#include "layers/regularizers.h"
#include "optimizers/registry.h"

namespace keel::conformance {

std::map<std::string, std::vector<std::string>> known_classes() {
  return {{"activations", activations::names()},
          {"constraints", ConstraintFunction::registry().class_names()},
          {"initializers", initializers::registry().class_names()},
          {"layers", layer_registry().class_names()},
          {"losses", loss_registry().class_names()},
          {"metrics", metric_registry().class_names()},
          {"optimizers", optimizers::optimizer_registry().class_names()},
          {"regularizers", RegularizerFunction::registry().class_names()},
          {"schedules", optimizers::schedules::schedule_registry().class_names()}};
}

}  // namespace keel::conformance
