// Optimizer: an update rule, a learning rate, and the state of each variable (keras.optimizers).
//
// apply_gradients may be called in a strategy's replicas: gradients are then summed over the
// replicas (divide the loss by their number), each replica updates its share of the elements,
// and the variables are the same for all when it returns, in all processes of the job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/framework/base/handle.h>
#include <keel/framework/kernels/update_rules/update_rule.h>
#include <keel/optimizers/optimizer_options.h>
#include <keel/optimizers/step/optimizer_slots.h>
#include <keel/optimizers/step/step_plan.h>

namespace keel {

class DecayExceptions;
class LazyTables;
struct SteppedTable;
class TogetherStep;
struct StepMemory;
struct StepProposal;
enum class GradientKind : int64_t;
struct StepVariable;

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One step. In this order: unscales the gradients and accumulates them (which may be all), clips
  // them, decays the variables, updates them, averages them, applies their constraints
  // (Variable::constraint), and counts the call. See OptimizerOptions for what of it is on.
  // IndexedSlices update the rows they name, summed by id first, where that is what the step does
  // to a dense gradient; steps that move every row (Adam, Ftrl, momentum, weight decay, averages,
  // accumulation) update the whole table, which costs time in proportion to it, unless
  // OptimizerOptions::lazy_rows is on. Constraints look at all of it.
  // A variable without a gradient keeps its value (all without: ValueError), which its average
  // counts; a virtual one is left alone. Empty lists do nothing. A variable with a gradient in some
  // replicas only has zeros in the others.
  // ValueError if the lists differ in length, a variable stands there twice, a gradient has
  // another shape or ids out of range, a constraint gives another shape, or a variable with one has
  // IndexedSlices that lazy_rows is for; TypeError if a variable
  // or gradient is not floating or their dtypes differ; RuntimeError outside the replicas of a
  // strategy that has several, and in a VariableSnapshot::Scope; NotImplementedError for float64 in
  // several replicas, and for loss_scale_factor with a virtual variable. Collective inside them:
  // RuntimeError in all if their lists of variables do not agree or, of several processes, if the
  // variables differ when they are trained for the first time, or the rates or numbers of calls do.
  // Where all variables are virtual, other processes are not waited for: the next call tells.
  // A step that fails later, for want of memory say, does not count, but some of the variables may
  // have had it.
  void apply_gradients(const std::vector<Gradient>& gradients,
                       const std::vector<Variable>& variables);

  // Makes the slots of these variables now; apply_gradients makes those that are missing.
  void build(const std::vector<Variable>& variables);

  // The loss whose gradients apply_gradients expects: times loss_scale_factor.
  Tensor scale_loss(const Tensor& loss) const;
  // NotImplementedError for a loss_scale_factor beside a virtual variable: its gradients do not
  // come to apply_gradients, which refuses it too, but after the tape has trained what it stands
  // for.
  void check_variables(const std::vector<Variable>& variables) const;

  // Variables that weight_decay leaves alone from now on: these, and those in whose name
  // (Variable::name) one of the patterns, regular expressions, is found. Replaces what was
  // excluded. ValueError for a malformed pattern.
  void exclude_from_weight_decay(const std::vector<Variable>& var_list,
                                 const std::vector<std::string>& var_names = {});
  bool excludes_from_weight_decay() const;  // anything

  // With use_ema, gives each variable its average; does nothing for those without, and before the
  // first step. For the end of training, outside of replicas (RuntimeError); collective if slots()
  // is.
  void finalize_variable_values(const std::vector<Variable>& variables);

  // Completed updates: calls of apply_gradients, divided by gradient_accumulation_steps.
  int64_t iterations() const;
  void set_iterations(int64_t calls);  // ValueError if negative
  // The int64 scalar that holds the number of calls, "<name>/iteration"; files keep it.
  const Variable& iterations_variable() const { return iterations_; }
  double learning_rate() const;  // of the next step; schedules count calls
  // RuntimeError if the rate is a schedule or a callable.
  void set_learning_rate(double rate);
  const LearningRate& learning_rate_source() const { return learning_rate_; }

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return name_; }
  const UpdateRule& rule() const { return *rule_; }
  std::shared_ptr<const UpdateRule> shared_rule() const { return rule_; }
  // Keras's config, the learning rate of now included.
  virtual Config get_config() const = 0;

  // The slots that variables have: those of the rule, then "average" with use_ema and
  // "gradient_accumulator" with gradient_accumulation_steps.
  const std::vector<Slot>& slot_specs() const { return slots_.specs(); }
  // State of `variable`, in the order of slot_specs(); empty if it has none yet. Named
  // "<variable path>/<slot>". After steps of replicas in several processes the call outside the
  // replicas makes them whole, which is collective: all processes make it before they read.
  std::vector<Variable> slots(const Variable& variable) const;
  // Of the rule (UpdateRule::shared_slots): float64 scalars "<name>/<slot>".
  const std::vector<Variable>& shared_slots() const { return shared_slots_; }
  // All state for training these variables, in the order of Keras's files, where a learning rate
  // that is a number stands behind the first one: iterations_variable(), slots, shared_slots().
  // Makes slots that are missing; collective if slots() is.
  std::vector<Variable> variables(const std::vector<Variable>& trained);

 protected:
  // ValueError for options that do not fit (check_optimizer_options), and for lazy_rows with a rule
  // that cannot have it (StepHistory).
  Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule,
            OptimizerOptions options);
  // With the common ones among the options of a class.
  template <class Options>
  Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule, const Options& options)
      : Optimizer(std::move(class_name), std::move(rule), optimizer_options(options)) {}
  // Keras's config of `options`, with the name and the rate of now.
  template <class Options>
  Config config_of(Options options) const {
    options.name = name_;
    options.learning_rate = learning_rate_;
    Config out = to_config(options);
    // Keras does not know it.
    const Config* lazy = out.find("lazy_rows");
    if (lazy != nullptr && *lazy == encode(LazyRows::kOff)) out.erase("lazy_rows");
    return out;
  }

 private:
  friend class TogetherStep;
  void apply_alone(const std::vector<Gradient>& gradients, const std::vector<Variable>& variables);
  void apply_together(const std::vector<Gradient>& gradients,
                      const std::vector<Variable>& variables);
  StepProposal proposal(const std::vector<Gradient>& gradients,
                        const std::vector<Variable>& variables);
  void complete(std::vector<StepVariable>& variables) const;
  int64_t calls() const;
  bool updates_after(int64_t calls) const;  // rather than accumulates
  StepPlan plan_after(int64_t calls, double learning_rate) const;
  bool decays(const Variable& variable) const;
  bool steps_whole_table(const Variable& variable) const;
  bool may_wait(const Variable& variable, GradientKind form) const;
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
  const std::string name_;
  const std::shared_ptr<const UpdateRule> rule_;
  LearningRate learning_rate_;
  Variable iterations_;
  std::vector<Variable> shared_slots_;
  OptimizerSlots slots_;
  const std::shared_ptr<LazyTables> lazy_;  // null unless lazy_rows
  const std::shared_ptr<DecayExceptions> decay_exceptions_;
  const std::shared_ptr<StepMemory> step_memory_;
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
