// Ways through the public API to train one table with given gradients of activations.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/case_inputs.h"

namespace keel::conformance {

// Features by name; one without gradient is one that the loss does not use.
struct StepInput {
  std::map<std::string, FeatureInput> features;
  std::map<std::string, Tensor> gradients;
};

struct Training {
  double rate(size_t step) const { return learning_rates[step % learning_rates.size()]; }

  Array initial_table;
  TableConfig table;
  FeatureConfig feature;  // of every name in `steps`, on that table
  Config optimizer;       // as cases have it
  std::vector<double> learning_rates;
  bool pipelined = false;
  int64_t rows = 0;  // of a batch
  std::vector<StepInput> steps;
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  // Step `k`; replica 0 has the whole batch, the others have no ids. The activations of replica 0.
  virtual std::map<std::string, Tensor> step(size_t k) = 0;
  virtual Tensor table() = 0;
  virtual Tensor slot(const std::string& name) = 0;  // ValueError if there is none
};

struct NamedTrainer {
  std::string name;
  // Under the strategy of now, which must outlive it.
  std::function<std::unique_ptr<Trainer>(distribute::Strategy&, const Training&)> make;
};
// The layer and the mid-level object; for optimizers that only the V1 engine takes, that.
std::vector<NamedTrainer> trainers_for(const Training& training);

}  // namespace keel::conformance
