// Optimizer: an update rule, a learning rate, and the state of each variable (keras.optimizers).
//
// apply_gradients may be called in a strategy's replicas: gradients are then summed over the
// replicas (divide the loss by their number), each replica updates its share of the elements,
// and the variables are the same for all when it returns, in all processes of the job.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/variable.h"
#include "framework/handle.h"
#include "framework/kernels/update_rule.h"
#include "optimizers/learning_rate.h"
#include "optimizers/slot_deal.h"

namespace keel {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step: updates each variable by its gradient, then counts one iteration.
  // IndexedSlices update the rows they name, summed by id first, where that is what the rule
  // does to a dense gradient; rules that move every row every step (Adam, Ftrl, momentum)
  // update the whole table, which costs time in proportion to it.
  // A variable without a gradient is left alone (all without: ValueError), and so is a virtual
  // one. Empty lists do nothing. A variable with a gradient in some replicas only has zeros in
  // the others.
  // ValueError if the lists differ in length, a variable stands there twice, or a gradient has
  // another shape or ids out of range; TypeError if a variable or gradient is not floating or
  // their dtypes differ; RuntimeError outside the replicas of a strategy that has several;
  // NotImplementedError for float64 in several replicas. Collective inside them: RuntimeError in
  // all if their lists of variables do not agree, or if the variables of several processes differ
  // when they are trained for the first time.
  void apply_gradients(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables);

  // Makes the slots of these variables now; apply_gradients makes those that are missing.
  void build(const std::vector<Variable>& variables);

  int64_t iterations() const;               // completed steps
  void set_iterations(int64_t iterations);  // ValueError if negative
  // The int64 scalar that holds them, "<name>/iteration"; files keep it.
  const Variable& iterations_variable() const { return iterations_; }
  double learning_rate() const;  // of the next step
  // RuntimeError if the rate is a schedule or a callable.
  void set_learning_rate(double rate);
  const LearningRate& learning_rate_source() const { return learning_rate_; }

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return name_; }
  const UpdateRule& rule() const { return *rule_; }
  std::shared_ptr<const UpdateRule> shared_rule() const { return rule_; }
  // Keras's config, the learning rate of now included.
  virtual Config get_config() const = 0;

  // State of `variable`, in the order of rule().slots(); empty if it has none yet. Named
  // "<variable path>/<slot>". After steps of replicas in several processes the call outside the
  // replicas makes them whole, which is collective: all processes make it before they read.
  std::vector<Variable> slots(const Variable& variable) const;

 protected:
  // `options` holds learning_rate and name; an empty name becomes the class name in snake case.
  Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule,
            LearningRate learning_rate, std::string name);
  // Keras's config of `options`, with the name and the rate of now.
  template <class Options>
  Config config_of(Options options) const {
    options.name = name_;
    options.learning_rate = learning_rate_;
    return to_config(options);
  }

 private:
  void apply_alone(const std::vector<Gradient>& gradients, const std::vector<Variable>& variables);
  void apply_together(const std::vector<Gradient>& gradients,
                      const std::vector<Variable>& variables);
  void prepare(const std::vector<Variable>& variables);
  // What it takes to tell that processes start alike: 0 for a variable that has its state.
  uint64_t checksum_of_start(const Variable& variable) const;
  void deal_slots(const std::vector<Variable>& dense, const std::vector<Variable>& all_moved);
  void make_slots_whole(const std::vector<Variable>& variables) const;
  void count_iteration();

  const std::string class_name_;
  const std::string name_;
  const std::shared_ptr<const UpdateRule> rule_;
  LearningRate learning_rate_;
  Variable iterations_;
  mutable std::mutex mutex_;                         // guards slots_
  std::map<uint64_t, std::vector<Variable>> slots_;  // by Variable::id
  // Of the replicas in several processes of `dealt_to_`; no variable in two of them.
  mutable std::vector<SlotDeal> deals_;
  distribute::ProcessGroup* dealt_to_ = nullptr;
};

using OptimizerHandle = Handle<Optimizer>;

namespace optimizers {

// By name ("adam", "Adam") with default options, or {"class_name", "config"}. ValueError if
// unknown.
OptimizerHandle get(const std::string& name);
OptimizerHandle deserialize(const Config& config);
Config serialize(const Optimizer& optimizer);

}  // namespace optimizers
}  // namespace keel
