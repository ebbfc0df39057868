// Optimizer: an update rule, a learning rate and slot variables (keras.optimizers).
//
// apply_gradients() may be called in the replicas of a strategy. Gradients are then summed over the
// replicas (divide the loss by the number of replicas), and each replica updates its shard of the
// elements. When the call returns, the variables are equal in all replicas and in all processes of
// the job.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/framework/base/handle.h>
#include <keel/optimizers/optimizer_options.h>

namespace keel {

class Optimizer;
class StepRunner;
class UpdateRule;
struct Slot;

// A shared reference to an optimizer of any class.
using OptimizerHandle = Handle<Optimizer>;

// Base class of all optimizers.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Performs one step:
  //   1. divides the gradients by the loss scale and accumulates them (if gradients are
  //      accumulated, most calls end here),
  //   2. clips the gradients,
  //   3. applies weight decay to the variables,
  //   4. updates the variables,
  //   5. updates their averages,
  //   6. applies their constraints (Variable::constraint),
  //   7. counts the call.
  // OptimizerOptions selects which of these stages are enabled.
  //
  // IndexedSlices are first summed by id and then update only the rows that they name, if the step
  // would not change the other rows for a dense gradient either. Steps that change every row (Adam,
  // Ftrl, momentum, weight decay, averages, accumulation) update the whole table, in time
  // proportional to its size, unless OptimizerOptions::lazy_rows is set. Constraints are applied to
  // the whole variable.
  //
  // A variable without a gradient keeps its value, and its average is updated with that value. A
  // virtual variable is not changed. Empty lists have no effect. A variable with a gradient in some
  // replicas only has a zero gradient in the others.
  //
  // Throws:
  //   - ValueError if the lists differ in length, a variable is listed twice, no variable has a
  //     gradient, a gradient has another shape than its variable or ids out of range, a constraint
  //     returns another shape, or a variable with a constraint receives IndexedSlices that
  //     lazy_rows would defer;
  //   - TypeError if a variable or gradient is not floating point or their dtypes differ;
  //   - RuntimeError if the current strategy has several replicas and the call is outside of them,
  //     and in a VariableSnapshot::Scope;
  //   - NotImplementedError for float64 variables in several replicas, for loss_scale_factor with a
  //     virtual variable, and for LazyRows::kClosedForm in several processes.
  //
  // In replicas the call is collective. It throws RuntimeError in all replicas if their lists of
  // variables do not agree or, with several processes, if the variables differ when they are
  // trained for the first time, or if the learning rates or the numbers of calls differ. If all
  // variables are virtual, the call does not wait for other processes; the next call reports their
  // errors.
  //
  // A step that fails after these checks, for example because memory is exhausted, is not counted,
  // but some of the variables may already have been updated.
  virtual void apply_gradients(const std::vector<Gradient>& gradients,
                               const std::vector<Variable>& variables);

  // Creates the slots of `variables` now. Otherwise apply_gradients() creates missing slots.
  void build(const std::vector<Variable>& variables);

  // Returns the loss that apply_gradients() expects gradients of: `loss` times loss_scale_factor.
  virtual Tensor scale_loss(const Tensor& loss) const;
  // Throws NotImplementedError if loss_scale_factor is set and one of the variables is virtual. The
  // gradients of the parameters behind a virtual variable do not pass through apply_gradients(), so
  // they cannot be unscaled. apply_gradients() makes the same check, but only after the tape has
  // trained those parameters.
  virtual void check_variables(const std::vector<Variable>& variables) const;

  // Excludes variables from weight decay: those in `var_list`, and those whose Variable::name
  // contains a match of a regular expression in `var_names`. Replaces earlier exclusions. Throws
  // ValueError if a pattern is malformed.
  void exclude_from_weight_decay(const std::vector<Variable>& var_list,
                                 const std::vector<std::string>& var_names = {});
  // Returns true if anything is excluded.
  bool excludes_from_weight_decay() const;

  // With use_ema, assigns its average to each variable that has one. Has no effect without use_ema
  // and before the first step. Call it at the end of training. Throws RuntimeError in replicas;
  // collective if slots() is.
  void finalize_variable_values(const std::vector<Variable>& variables);

  // Returns the number of completed updates: calls of apply_gradients() divided by
  // gradient_accumulation_steps.
  int64_t iterations() const;
  // Sets the number of calls of apply_gradients(). Throws ValueError if it is negative.
  void set_iterations(int64_t calls);
  // Returns the int64 scalar that holds the number of calls, "<name>/iteration".
  const Variable& iterations_variable() const { return iterations_; }
  // Returns the learning rate of the next step. Schedules are evaluated at the number of calls.
  double learning_rate() const;
  // Replaces the learning rate. Throws RuntimeError if it is a schedule or a callable, and like
  // learning_rate() for a MultiOptimizer.
  void set_learning_rate(double rate);
  // Returns the learning rate as it was given: a number, a schedule or a function.
  const LearningRate& learning_rate_source() const;

  // Returns the optimizer whose rule runs: the inner one of a class that wraps an optimizer, which
  // shares its state, and otherwise this one.
  virtual const Optimizer& unwrapped() const { return *this; }
  // Returns the variables of a class that wraps an optimizer, which precede those of the inner
  // optimizer in files; empty for other classes.
  virtual std::vector<Variable> wrapper_variables() const { return {}; }

  // Returns the optimizers that a MultiOptimizer shares the variables among; empty for others.
  virtual const std::vector<OptimizerHandle>& optimizers() const;
  // Returns the one that updates `variable` and has the rule() and slot_specs() of its slots().
  virtual const Optimizer& optimizer_of(const Variable& /*variable*/) const { return *this; }

  // Returns the name of the class, for example "Adam".
  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return name_; }       // by default the class name in snake case
  const UpdateRule& rule() const;                         // the arithmetic of the update
  std::shared_ptr<const UpdateRule> shared_rule() const;  // the same, shared
  // Returns the Keras config, with the current learning rate.
  virtual Config get_config() const = 0;

  // Returns the slots that each variable has: those of the rule, then "average" with use_ema, then
  // "gradient_accumulator" with gradient_accumulation_steps.
  const std::vector<Slot>& slot_specs() const;
  // Returns the slot variables of `variable`, named "<variable path>/<slot>", in the order of
  // slot_specs(); empty if they have not been created yet. After steps in the replicas of several
  // processes, a call outside the replicas gathers the shards of the slots. That call is
  // collective: every process must make it.
  std::vector<Variable> slots(const Variable& variable) const;
  // Returns the slots of the rule itself (UpdateRule::shared_slots): scalars "<name>/<slot>".
  const std::vector<Variable>& shared_slots() const { return shared_slots_; }
  // Returns all state needed to continue training these variables, in the order of Keras's files:
  // wrapper_variables(), and then of each of optimizers(), or of this one, iterations_variable(),
  // slots, shared_slots(). Keras's files also hold learning rates that are numbers, after the
  // iterations. Creates missing slots; collective if slots() is.
  std::vector<Variable> variables(const std::vector<Variable>& trained);

 protected:
  // Throws ValueError if the options are invalid (check_optimizer_options), and if lazy_rows is set
  // for a rule that does not support it (StepHistory).
  Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule,
            OptimizerOptions options);
  // Takes the common options from the options of an optimizer class.
  template <class Options>
  Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule, const Options& options)
      : Optimizer(std::move(class_name), std::move(rule), optimizer_options(options)) {}
  // Makes an optimizer that shares the state of `inner`, for classes that wrap one. An empty name
  // stands for the class name in snake case.
  Optimizer(std::string class_name, const std::string& name, const Optimizer& inner);
  // Returns the Keras config of `options`, with the current name and learning rate. Keras has no
  // lazy_rows, so its key is omitted while it has its default.
  template <class Options>
  Config config_of(Options options) const {
    options.name = name_;
    options.learning_rate = learning_rate_source();
    Config out = to_config(options);
    const Config* lazy = out.find("lazy_rows");
    if (lazy != nullptr && *lazy == encode(LazyRows::kOff)) out.erase("lazy_rows");
    return out;
  }

 private:
  std::vector<std::vector<Variable>> shares(const std::vector<Variable>& variables) const;

  const std::string class_name_;
  const OptimizerOptions options_;
  const std::string name_;
  Variable iterations_;
  std::vector<Variable> shared_slots_;
  const std::shared_ptr<StepRunner> runner_;
};

namespace optimizers {

// Creates an optimizer by name ("adam", "Adam") with default options. Built-in names are matched
// case-insensitively, as in Keras. Throws ValueError if the class is unknown.
OptimizerHandle get(const std::string& name);
// Creates an optimizer from {"class_name", "config"}. Throws ValueError if the class is unknown.
OptimizerHandle deserialize(const Config& config);
// Returns {"class_name", "config"} of `optimizer`, with Keras's "module" and "registered_name" for
// built-in classes.
Config serialize(const Optimizer& optimizer);

}  // namespace optimizers
}  // namespace keel
