#include <keel/optimizers/optimizer.h>

#include <absl/strings/ascii.h>
#include <algorithm>
#include <iterator>
#include <utility>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/internal/step_runner.h>

namespace keel {
namespace {

// Converts a class name as Keras does: "RMSprop" becomes "rm_sprop".
std::string snake_case(const std::string& name) {
  const auto upper = [&](size_t i) { return absl::ascii_isupper(name[i]); };
  const auto lower = [&](size_t i) { return i < name.size() && absl::ascii_islower(name[i]); };
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(i) && (lower(i - 1) || lower(i + 1))) out += '_';
    out += absl::ascii_tolower(name[i]);
  }
  return out;
}

std::vector<Variable> shared_slots_of(const UpdateRule& rule, const std::string& name) {
  std::vector<Variable> out;
  for (const Slot& slot : rule.shared_slots()) {
    out.emplace_back(Tensor::scalar(slot.initial),
                     VariableOptions{.name = slot.name, .trainable = false});
    out.back().set_path(name + "/" + slot.name);
  }
  return out;
}

}  // namespace

Optimizer::Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule,
                     OptimizerOptions options)
    : class_name_(std::move(class_name)),
      options_(std::move(options)),
      name_(options_.name.empty() ? snake_case(class_name_) : options_.name),
      iterations_(Tensor::scalar<int64_t>(0), {.name = "iteration", .trainable = false}),
      shared_slots_(shared_slots_of(*rule, name_)),
      runner_(std::make_shared<StepRunner>(class_name_, options_, std::move(rule), iterations_,
                                           shared_slots_)) {
  check_optimizer_options(class_name_, options_);
  iterations_.set_path(name_ + "/iteration");
}

Optimizer::Optimizer(std::string class_name, const std::string& name, const Optimizer& inner)
    : class_name_(std::move(class_name)),
      options_(inner.options_),
      name_(name.empty() ? snake_case(class_name_) : name),
      iterations_(inner.iterations_),
      shared_slots_(inner.shared_slots_),
      runner_(inner.runner_) {}

Optimizer::~Optimizer() = default;

void Optimizer::apply_gradients(const std::vector<Gradient>& gradients,
                                const std::vector<Variable>& variables) {
  runner_->apply_gradients(gradients, variables);
}

// Returns the variables of each of optimizers(), which must not be empty.
std::vector<std::vector<Variable>> Optimizer::shares(const std::vector<Variable>& variables) const {
  std::vector<std::vector<Variable>> out(optimizers().size());
  for (const Variable& variable : variables) {
    const Optimizer* const own = &optimizer_of(variable);
    const auto is_own = [&](const OptimizerHandle& one) { return one.shared().get() == own; };
    out[std::ranges::find_if(optimizers(), is_own) - optimizers().begin()].push_back(variable);
  }
  return out;
}

void Optimizer::build(const std::vector<Variable>& variables) {
  if (optimizers().empty()) return runner_->build(variables);
  const std::vector<std::vector<Variable>> of_each = shares(variables);
  for (size_t o = 0; o < of_each.size(); ++o) optimizers()[o]->build(of_each[o]);
}

Tensor Optimizer::scale_loss(const Tensor& loss) const {
  return options_.loss_scale_factor ? ops::scale(loss, *options_.loss_scale_factor) : loss;
}

void Optimizer::check_variables(const std::vector<Variable>& variables) const {
  runner_->check_variables(variables);
}

void Optimizer::exclude_from_weight_decay(const std::vector<Variable>& var_list,
                                          const std::vector<std::string>& var_names) {
  runner_->decay_exceptions().set(class_name_ + ".exclude_from_weight_decay", var_list, var_names);
  for (const OptimizerHandle& one : optimizers()) {
    one->exclude_from_weight_decay(var_list, var_names);
  }
}

bool Optimizer::excludes_from_weight_decay() const { return !runner_->decay_exceptions().empty(); }

void Optimizer::finalize_variable_values(const std::vector<Variable>& variables) {
  if (current_replica_context() != nullptr && current_replica_context()->replicas > 1) {
    throw RuntimeError(class_name_,
                       ".finalize_variable_values: must be called outside of replicas; call it "
                       "from the main program");
  }
  if (!optimizers().empty()) {
    const std::vector<std::vector<Variable>> of_each = shares(variables);
    for (size_t o = 0; o < of_each.size(); ++o) {
      optimizers()[o]->finalize_variable_values(of_each[o]);
    }
  }
  if (!options_.use_ema || runner_->calls() == 0) return;
  const size_t average = rule().slots().size();
  runner_->all_slots().make_whole(variables);
  for (const Variable& variable : variables) {
    const std::vector<Variable> slots = runner_->all_slots().slots(variable);
    if (!slots.empty()) variable.assign(slots[average].read());
  }
}

int64_t Optimizer::iterations() const {
  return runner_->calls() / options_.gradient_accumulation_steps.value_or(1);
}

void Optimizer::set_iterations(int64_t calls) {
  if (calls < 0) {
    throw ValueError(class_name_,
                     ".set_iterations: the number of calls must not be negative, received ", calls);
  }
  iterations_.assign(Tensor::scalar(calls));
  for (const OptimizerHandle& one : optimizers()) one->set_iterations(calls);
}

double Optimizer::learning_rate() const {
  if (!optimizers().empty()) {
    throw RuntimeError(class_name_, ".learning_rate: each optimizer has its own; use the members ",
                       "of optimizers()");
  }
  return learning_rate_source()(runner_->calls());
}

void Optimizer::set_learning_rate(double rate) {
  if (!optimizers().empty()) {
    throw RuntimeError(class_name_, ".set_learning_rate: each optimizer has its own; use the ",
                       "members of optimizers(), or schedules");
  }
  if (!learning_rate_source().number()) {
    throw RuntimeError(class_name_,
                       ".set_learning_rate: the learning rate is a schedule or a function and "
                       "cannot be replaced; create the optimizer with a number");
  }
  runner_->set_learning_rate(rate);
}

const LearningRate& Optimizer::learning_rate_source() const { return runner_->learning_rate(); }

const UpdateRule& Optimizer::rule() const { return runner_->rule(); }

std::shared_ptr<const UpdateRule> Optimizer::shared_rule() const { return runner_->shared_rule(); }

const std::vector<Slot>& Optimizer::slot_specs() const { return runner_->all_slots().specs(); }

std::vector<Variable> Optimizer::slots(const Variable& variable) const {
  return optimizer_of(variable).runner_->slots(variable);
}

const std::vector<OptimizerHandle>& Optimizer::optimizers() const {
  static const std::vector<OptimizerHandle> kNone;
  return kNone;
}

std::vector<Variable> Optimizer::variables(const std::vector<Variable>& trained) {
  build(trained);
  if (!optimizers().empty()) {
    const std::vector<std::vector<Variable>> of_each = shares(trained);
    std::vector<Variable> out = wrapper_variables();
    for (size_t o = 0; o < of_each.size(); ++o) {
      std::ranges::move(optimizers()[o]->variables(of_each[o]), std::back_inserter(out));
    }
    return out;
  }
  std::vector<Variable> real;
  std::ranges::copy_if(trained, std::back_inserter(real),
                       [](const Variable& v) { return !v.is_virtual(); });
  std::vector<std::vector<Variable>> of_each;
  for (const Variable& v : real) of_each.push_back(slots(v));
  std::vector<Variable> out = wrapper_variables();
  out.push_back(iterations_);
  for (const SlotPlace& place : order_in_files(slot_specs(), of_each.size())) {
    if (!slot_shape(rule(), place.slot, real[place.variable])) continue;
    out.push_back(of_each[place.variable][place.slot]);
  }
  out.insert(out.end(), shared_slots_.begin(), shared_slots_.end());
  return out;
}

}  // namespace keel
