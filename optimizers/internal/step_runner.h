// StepRunner: the state of an optimizer, and the stages of its steps.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/optimizers/optimizer_options.h>
#include <keel/optimizers/step/decay_exceptions.h>
#include <keel/optimizers/step/keyed_updates.h>
#include <keel/optimizers/step/lazy_table.h>
#include <keel/optimizers/step/optimizer_slots.h>
#include <keel/optimizers/step/optimizer_step.h>
#include <keel/optimizers/step/step_agreement.h>

namespace keel {

// The implementation of one Optimizer, whose header documents the functions with the same names.
class StepRunner {
 public:
  // `iterations` counts the calls; `shared_slots` are those of the rule.
  StepRunner(std::string class_name, const OptimizerOptions& options,
             std::shared_ptr<const UpdateRule> rule, Variable iterations,
             std::vector<Variable> shared_slots);

  void apply_gradients(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables);
  void build(const std::vector<Variable>& variables);
  void check_variables(const std::vector<Variable>& variables) const;
  std::vector<Variable> slots(const Variable& variable) const;

  // Returns the number of calls of apply_gradients().
  int64_t calls() const;
  const OptimizerSlots& all_slots() const { return slots_; }
  DecayExceptions& decay_exceptions() { return decay_exceptions_; }
  const UpdateRule& rule() const { return *rule_; }
  const std::shared_ptr<const UpdateRule>& shared_rule() const { return rule_; }
  const LearningRate& learning_rate() const { return learning_rate_; }
  void set_learning_rate(double rate) { learning_rate_ = rate; }

 private:
  friend class ReplicatedStep;
  void apply_local(const std::vector<Gradient>& gradients, const std::vector<Variable>& variables);
  void apply_replicated(const std::vector<Gradient>& gradients,
                        const std::vector<Variable>& variables);
  StepProposal proposal(const std::vector<Gradient>& gradients,
                        const std::vector<Variable>& variables);
  void complete(std::vector<StepVariable>& variables) const;
  void append_keyed(const KeyedUpdates& keyed, size_t replica,
                    std::vector<StepVariable>& variables) const;
  bool updates_after(int64_t calls) const;  // false: the call only accumulates
  StepPlan plan_after(int64_t calls, double learning_rate) const;
  double weight_decay_of(const Variable& variable) const;
  bool decays(const Variable& variable) const;
  bool steps_whole_table(const Variable& variable) const;
  bool defers_rows(const Variable& variable, GradientKind form) const;
  void check_keyed(const std::vector<Variable>& variables) const;
  void check_lazy_rows(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables) const;
  void prepare(const std::vector<StepVariable>& updated, const std::vector<Variable>& touched);
  std::vector<SteppedTable> lazy_tables(const std::vector<StepVariable>& updated) const;
  void pack_lazy_rows(const std::vector<StepVariable>& updated);
  std::vector<double> shared_values(const StepPlan& plan) const;
  void finish(const StepPlan& plan, const std::vector<StepVariable>& updated,
              const std::vector<Variable>& averaged);
  void count_call(const StepPlan& plan, const std::vector<StepVariable>& updated);
  uint64_t checksum_of_start(const Variable& variable) const;

  const std::string class_name_;
  const OptimizerOptions options_;
  const std::shared_ptr<const UpdateRule> rule_;
  LearningRate learning_rate_;
  Variable iterations_;
  std::vector<Variable> shared_slots_;
  OptimizerSlots slots_;
  const std::shared_ptr<LazyTables> lazy_;  // null unless lazy_rows
  DecayExceptions decay_exceptions_;
  StepMemory step_memory_;
  // Of the current step of several replicas. One of them sets it between barriers.
  std::optional<KeyedUpdates> keyed_;
  std::exception_ptr keyed_error_;  // why their ids were not admitted
};

}  // namespace keel
