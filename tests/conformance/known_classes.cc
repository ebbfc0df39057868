#include "tests/conformance/known_classes.h"

#include <keel/framework/initializers.h>
#include <keel/layers/activations.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularizers.h>
#include <keel/optimizers/internal/registry.h>
#include <keel/optimizers/schedules/internal/schedule_registry.h>

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
