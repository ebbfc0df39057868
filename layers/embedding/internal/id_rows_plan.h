// The serving steps of EmbedReduce and of tables of DistributedEmbedding on the default device.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <keel/layers/serving/steps/planner.h>

namespace keel {

// A lookup of ids in the form of EmbedReduce, for a serving plan.
struct IdRowsPlan {
  std::string caller = {};                            // prefix of errors
  Tensor table = {};                                  // float32 [rows, dim]; not used with `keys`
  std::shared_ptr<const ServingKeys> keys = nullptr;  // of a table with dynamic ids
  PlanValue ids = {};
  std::optional<PlanValue> weights = {};
  std::string combiner = "mean";
  int64_t max_row_length = kUnknown;  // see IdRowsOptions
};

// Adds the lookup. Its result is [batch, dim], with the bits of the layer. Returns nothing if there
// is no step for these ids and weights, such as dense weights; the plan then calls the layer.
std::optional<PlanValue> plan_id_rows(Planner& planner, const IdRowsPlan& rows);

}  // namespace keel
