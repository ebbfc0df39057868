// Reads the parts of a reference case of tables for unbounded ids (cases/dynamic_cases.json).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/optimizers/optimizer.h>

namespace keel::conformance {

// The batch of one replica.
struct DynamicBatch {
  Tensors::Dict ids;                                   // by feature, ragged
  Nest<std::optional<TensorLike>>::Dict weights;       // by feature
  std::map<std::string, std::vector<double>> targets;  // by feature; empty unless training
};

// One case.
struct DynamicCase {
  Config inputs;
  int replicas = 1;
  bool pipelined = false;
  double gradient_scale = 1;

  explicit DynamicCase(const Config& inputs);
  // Returns the keys as a tensor of the type of the table's keys.
  Tensor keys(const std::string& table, const Config& list) const;
  // Returns the tables by name, with the options of `dynamic` (table -> options) in place of those
  // of the case. `rate(table)` returns the learning rate of the next update.
  std::map<std::string, Table> tables(const Config& dynamic,
                                      const std::function<double(const std::string&)>& rate) const;
  // Returns the Keras optimizer of the first table, for cases of variables.
  OptimizerHandle keras_optimizer(std::function<double()> rate) const;
  Nest<FeatureConfig> features(const std::map<std::string, Table>& tables) const;
  // Returns the batches of an action by replica; all in one if `joined`. Replicas that the case
  // does not have, up to `of_replicas`, get samples without ids.
  std::vector<DynamicBatch> batches(const Config& action, bool joined, int of_replicas = 0) const;
  // Returns the learning rate of an update.
  double rate(const std::string& table, int64_t update) const;

 private:
  const Config& table_config(const std::string& name) const;
  bool has_strings(const std::string& table) const;
};

}  // namespace keel::conformance
