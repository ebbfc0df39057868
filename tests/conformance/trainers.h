// Trains one table with given activation gradients through each of the public APIs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/case_inputs.h"

namespace keel::conformance {

// Features by name. The loss does not use a feature without a gradient.
struct StepInput {
  std::map<std::string, FeatureInput> features;
  std::map<std::string, Tensor> gradients;
};

// A training case.
struct Training {
  double rate(size_t step) const { return learning_rates[step % learning_rates.size()]; }

  Array initial_table;
  TableConfig table;
  FeatureConfig feature;  // config of every feature in `steps`
  Config optimizer;       // in the form of the cases
  std::vector<double> learning_rates;
  bool pipelined = false;
  int64_t rows = 0;  // rows of a batch
  std::vector<StepInput> steps;
};

// Trains the table of one case.
class Trainer {
 public:
  virtual ~Trainer() = default;
  // Runs step `k`. Replica 0 has the whole batch, the others have no ids. Returns the activations
  // of replica 0.
  virtual std::map<std::string, Tensor> step(size_t k) = 0;
  virtual Tensor table() = 0;
  virtual Tensor slot(const std::string& name) = 0;  // throws ValueError if there is none
};

// A trainer with its name for messages.
struct NamedTrainer {
  std::string name;
  // Creates the trainer under the current strategy, which must outlive it.
  std::function<std::unique_ptr<Trainer>(distribute::Strategy&, const Training&)> make;
};
// Returns the trainers of a case: the layer and the mid-level object, or the V1 engine for
// optimizers that only the V1 engine supports.
std::vector<NamedTrainer> trainers_for(const Training& training);

}  // namespace keel::conformance
