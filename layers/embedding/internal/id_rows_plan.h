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
// is no step for these ids and weights; the plan then calls the layer. Weights of dense ids have a
// step if there is one for each id of a table with several columns, at most 128 in a row, unless
// ids may be left out (NotAdmitted::ignore()) or mean or sqrtn return the row of one id unchanged.
std::optional<PlanValue> plan_id_rows(Planner& planner, const IdRowsPlan& rows);

}  // namespace keel
