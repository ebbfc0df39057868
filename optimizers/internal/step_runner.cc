#include <keel/optimizers/internal/step_runner.h>

#include <absl/strings/str_join.h>
#include <algorithm>
#include <exception>
#include <ranges>
#include <utility>

#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/internal/collective_error.h>
#include <keel/distribute/internal/placement.h>
#include <keel/distribute/strategy.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/device.h>
#include <keel/framework/update_rule.h>
#include <keel/optimizers/step/gradient_check.h>
#include <keel/optimizers/step/keyed_updates.h>
#include <keel/optimizers/step/post_update.h>

namespace keel {
namespace {

using distribute::Bytes;
using distribute::Communicator;
using distribute::Strategy;

// The negative groups place averages, then accumulators, before the slots of the rule, which is
// their order in Keras's files.
std::vector<Slot> specs_of(const UpdateRule& rule, const OptimizerOptions& options) {
  std::vector<Slot> out = rule.slots();
  if (options.use_ema) out.push_back({.name = "average", .group = -2});
  if (options.gradient_accumulation_steps) {
    out.push_back({.name = "gradient_accumulator", .group = -1});
  }
  return out;
}

bool any_gradient(const std::vector<GradientKind>& forms) {
  return std::ranges::any_of(forms, [](GradientKind f) { return f != GradientKind::kNone; });
}

void check_any_gradient(const std::string& caller, const std::vector<GradientKind>& forms,
                        const std::vector<Variable>& variables) {
  if (any_gradient(forms)) return;
  throw ValueError(
      caller, ": none of these variables has a gradient; check that the loss depends on them: ",
      absl::StrJoin(std::views::transform(variables, &Variable::path), ", "));
}

// The variables of a call, grouped by what the step does to them. Virtual variables are omitted;
// all groups are empty if no variable has a gradient.
struct Sorted {
  std::vector<StepVariable> updated;
  std::vector<Variable> averaged;  // without a gradient: only their averages change
  std::vector<Variable> dense;     // those updated by dense gradients
  std::vector<Variable> touched;   // all whose value or slots change
};

Sorted sorted(const StepPlan& plan, const std::vector<Gradient>& gradients,
              const std::vector<Variable>& variables, const std::vector<GradientKind>& forms) {
  Sorted out;
  if (!any_gradient(forms)) return out;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    const bool updated = forms[i] != GradientKind::kNone;
    if (keyed_rows_of(v) != nullptr) continue;  // see KeyedUpdates
    if (v.is_virtual() || (!updated && !plan.averages)) continue;
    out.touched.push_back(v);
    if (!updated) {
      out.averaged.push_back(v);
      continue;
    }
    out.updated.push_back({.variable = v, .gradient = gradients[i], .form = forms[i]});
    if (forms[i] == GradientKind::kDense) out.dense.push_back(v);
  }
  return out;
}

std::shared_ptr<LazyTables> make_lazy_tables(const std::string& class_name,
                                             const std::shared_ptr<const UpdateRule>& rule,
                                             LazyRows rows) {
  if (rows == LazyRows::kOff) return nullptr;
  return std::make_shared<LazyTables>(class_name, rule, rows == LazyRows::kClosedForm);
}

bool has_constraint(const StepVariable& v) { return static_cast<bool>(v.variable.constraint()); }

void apply_constraints(const std::vector<StepVariable>& variables) {
  for (const StepVariable& v : variables) {
    if (v.variable.row_regularization().max_norm > 0 && v.form == GradientKind::kDense) {
      limit_row_norms(v.variable);
    }
    if (has_constraint(v)) apply_constraint(v.variable);
  }
}

}  // namespace

StepRunner::StepRunner(std::string class_name, const OptimizerOptions& options,
                       std::shared_ptr<const UpdateRule> rule, Variable iterations,
                       std::vector<Variable> shared_slots)
    : class_name_(std::move(class_name)),
      options_(options),
      rule_(std::move(rule)),
      learning_rate_(options_.learning_rate),
      iterations_(std::move(iterations)),
      shared_slots_(std::move(shared_slots)),
      slots_(rule_, specs_of(*rule_, options_)),
      lazy_(make_lazy_tables(class_name_, rule_, options_.lazy_rows)) {}

int64_t StepRunner::calls() const { return iterations_.read().item<int64_t>(); }

void StepRunner::build(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    check_floating(class_name_ + ".build", variable);
    if (KeyedRows* const rows = keyed_rows_of(variable)) rows->set_slots(rule_->slots());
  }
  slots_.build(variables);
}

std::vector<Variable> StepRunner::slots(const Variable& variable) const {
  if (current_replica_context() == nullptr) slots_.make_whole({variable});
  return slots_.slots(variable);
}

void StepRunner::apply_gradients(const std::vector<Gradient>& gradients,
                                 const std::vector<Variable>& variables) {
  const NoGradient pause;
  const profile::Scope scope(profile::Phase::kUpdate, class_name_, profile::Phase::kUpdate);
  if (VariableSnapshot::any_in_use()) {
    throw RuntimeError(class_name_,
                       ".apply_gradients: must not be called in a VariableSnapshot::Scope, where "
                       "copies replace the variables; leave the scope first");
  }
  check_gradients(class_name_ + ".apply_gradients", gradients, variables);
  check_variables(variables);
  check_lazy_rows(gradients, variables);
  check_keyed(variables);
  if (Strategy::current().num_replicas_in_sync() == 1) {
    apply_local(gradients, variables);
  } else {
    apply_replicated(gradients, variables);
  }
}

void StepRunner::check_keyed(const std::vector<Variable>& variables) const {
  for (const Variable& variable : variables) {
    if (keyed_rows_of(variable) == nullptr) continue;
    const std::string caller = class_name_ + ".apply_gradients";
    keel::check_keyed(caller, plan_after(0, 0), *rule_, variable);
  }
}

void StepRunner::check_variables(const std::vector<Variable>& variables) const {
  if (options_.loss_scale_factor.value_or(1) == 1) return;
  const auto found = std::ranges::find_if(variables, &Variable::is_virtual);
  if (found == variables.end()) return;
  throw NotImplementedError(
      class_name_, ".apply_gradients: loss_scale_factor must be 1 with the virtual variable ",
      found->path(), ", whose parameters are trained elsewhere; received ",
      *options_.loss_scale_factor);
}

bool StepRunner::updates_after(int64_t calls) const {
  return (calls + 1) % options_.gradient_accumulation_steps.value_or(1) == 0;
}

StepPlan StepRunner::plan_after(int64_t calls, double learning_rate) const {
  const int64_t steps = options_.gradient_accumulation_steps.value_or(1);
  const int64_t iteration = calls / steps;
  const int64_t frequency = options_.ema_overwrite_frequency.value_or(0);
  return {.step = {.learning_rate = learning_rate, .iteration = iteration},
          .updates = updates_after(calls),
          .loss_scale = options_.loss_scale_factor.value_or(1),
          .accumulation_steps = steps,
          .clipnorm = options_.clipnorm.value_or(0),
          .clipvalue = options_.clipvalue.value_or(0),
          .global_clipnorm = options_.global_clipnorm.value_or(0),
          .weight_decay = options_.weight_decay.value_or(0),
          .averages = options_.use_ema,
          .average_momentum = iteration == 0 ? 0 : options_.ema_momentum,
          .overwrites = options_.use_ema && frequency > 0 && (iteration + 1) % frequency == 0};
}

double StepRunner::weight_decay_of(const Variable& variable) const {
  const double option = options_.weight_decay.value_or(0);
  const auto* whole = dynamic_cast<const WholeVariableRule*>(rule_.get());
  const double decay = whole == nullptr ? option : whole->weight_decay(info_of(variable), option);
  return decay == 0 || decay_exceptions_.contains(variable) ? 0 : decay;
}

bool StepRunner::decays(const Variable& variable) const { return weight_decay_of(variable) != 0; }

// Returns false if the step updates only the rows that a sparse gradient names.
bool StepRunner::steps_whole_table(const Variable& variable) const {
  if (lazy_ != nullptr && keyed_rows_of(variable) == nullptr) return false;
  return rule_->moves_without_gradient() || options_.use_ema ||
         options_.gradient_accumulation_steps || decays(variable);
}

// Returns true if a step with this kind of gradient defers the rows that the gradient does not
// name.
bool StepRunner::defers_rows(const Variable& variable, GradientKind form) const {
  return lazy_ != nullptr && form == GradientKind::kRows && keyed_rows_of(variable) == nullptr &&
         (rule_->moves_without_gradient() || decays(variable));
}

void StepRunner::check_lazy_rows(const std::vector<Gradient>& gradients,
                                 const std::vector<Variable>& variables) const {
  const bool several_processes = current_replica_context() != nullptr &&
                                 Strategy::current().communicator().placement().processes() > 1;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!defers_rows(variables[i], form_of(gradients[i], false))) continue;
    if (several_processes && options_.lazy_rows == LazyRows::kClosedForm) {
      throw NotImplementedError(
          class_name_,
          ".apply_gradients: with lazy_rows closed_form, rounding depends on when a process reads "
          "a row, so the values of several processes would differ; use replay");
    }
    if (!variables[i].constraint()) continue;
    throw ValueError(class_name_, ".apply_gradients: lazy_rows ",
                     to_json(encode(options_.lazy_rows)),
                     " cannot be combined with the constraint of ", variables[i].path(),
                     ", which requires all rows in every step; remove one of them");
  }
}

void StepRunner::apply_local(const std::vector<Gradient>& gradients,
                             const std::vector<Variable>& variables) {
  if (variables.empty()) return;
  std::vector<GradientKind> forms;
  for (size_t i = 0; i < variables.size(); ++i) {
    forms.push_back(form_of(gradients[i], steps_whole_table(variables[i])));
  }
  check_any_gradient(class_name_ + ".apply_gradients", forms, variables);
  const int64_t calls_before = calls();
  const double rate = updates_after(calls_before) ? learning_rate_(calls_before) : 0;
  StepPlan plan = plan_after(calls_before, rate);
  Sorted all = sorted(plan, gradients, variables, forms);
  const std::vector<Gradient>* const own = &gradients;
  KeyedUpdates keyed(*rule_, {&own, 1}, forms, variables);
  prepare(all.updated, all.touched);
  pack_lazy_rows(all.updated);
  const std::vector<double> shared = shared_values(plan);
  plan.step.shared = shared;
  complete(all.updated);
  const size_t others = all.updated.size();
  keyed.commit([&](const Variable& v) { return steps_whole_table(v); });
  append_keyed(keyed, 0, all.updated);
  step_local(plan, *rule_, all.updated);
  all.updated.resize(others);
  finish(plan, all.updated, all.averaged);
  keyed.finish();
}

// One call of apply_gradients in one of several replicas.
class ReplicatedStep {
 public:
  ReplicatedStep(StepRunner& runner, const ReplicaContext& context,
                 const std::vector<Gradient>& gradients, const std::vector<Variable>& variables)
      : runner_(runner),
        caller_(runner.class_name_ + ".apply_gradients"),
        context_(context),
        gradients_(gradients),
        variables_(variables) {}

  void run() {
    if (communicator_.placement().processes() > 1) return run_in_processes();
    const StepAgreement agreement =
        agree_on_step(communicator_, runner_.proposal(gradients_, variables_), variables_,
                      [&](const StepAgreement& agreed) { as_leader([&] { begin(agreed); }); });
    check(agreement);
    if (variables_.empty()) return;
    if (updates_keyed(agreement)) commit_keyed(agreement);
    step(agreement, nullptr);
  }

 private:
  // Runs `fn` once per process, in the last replica to arrive, under the context of the first
  // replica of the process. The result does not depend on which replica arrives last.
  template <class Fn>
  void as_leader(const Fn& fn) const {
    ReplicaContext first = context_;
    first.replica -= first.local_replica;
    first.local_replica = 0;
    const ReplicaScope replica(first);
    const DeviceScope core({.core = first.replica});
    const NoGradient pause;
    fn();
  }

  void check(const StepAgreement& agreement) const {
    if (!agreement.refused.empty()) throw RuntimeError(caller_, ": ", agreement.refused);
  }

  // Runs while all replicas of the process are in a barrier, so none of them reads the variables,
  // and all of them see the new slots after it.
  void begin(const StepAgreement& agreed) const {
    if (!agreed.refused.empty() || !any_gradient(agreed.forms)) return;
    StepPlan plan = runner_.plan_after(agreed.calls, agreed.learning_rate);
    const Sorted all = sorted(plan, gradients_, variables_, agreed.forms);
    if (!all.touched.empty()) {
      runner_.prepare(all.updated, all.touched);
      // A rule for whole variables updates all slots in every process.
      const bool shards = dynamic_cast<const WholeVariableRule*>(runner_.rule_.get()) == nullptr;
      if (shards && communicator_.placement().processes() > 1) {
        runner_.slots_.shard(all.dense, all.touched);
      }
      runner_.pack_lazy_rows(all.updated);
    }
    if (!all.updated.empty() || updates_keyed(agreed)) return;
    const std::vector<double> shared = runner_.shared_values(plan);
    plan.step.shared = shared;
    runner_.finish(plan, all.updated, all.averaged);
  }

  bool updates_keyed(const StepAgreement& agreed) const {
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (agreed.forms[i] != GradientKind::kNone && keyed_rows_of(variables_[i]) != nullptr)
        return true;
    }
    return false;
  }

  // One replica of each process admits the keys of all. The replicas of a process pass each other
  // the addresses of their gradients, which exist until the end of the step. Every replica throws
  // the error of a full table, after which a job of several processes can continue.
  void commit_keyed(const StepAgreement& agreed) const {
    const std::vector<Gradient>* const own = &gradients_;
    communicator_.local_gather(std::as_bytes(std::span(&own, 1)), "tables with dynamic ids",
                               [&](std::span<const Bytes> messages) {
                                 as_leader([&] {
                                   runner_.keyed_error_ = nullptr;
                                   try {
                                     commit_keyed_of(agreed, messages);
                                   } catch (const distribute::CollectiveError&) {
                                     runner_.keyed_error_ = std::current_exception();
                                   }
                                 });
                               });
    if (runner_.keyed_error_ != nullptr) std::rethrow_exception(runner_.keyed_error_);
  }

  void commit_keyed_of(const StepAgreement& agreed, std::span<const Bytes> messages) const {
    std::vector<const std::vector<Gradient>*> gradients;
    for (const Bytes& message : messages) {
      gradients.push_back(distribute::as_elements<const std::vector<Gradient>*>(message)[0]);
    }
    runner_.keyed_.reset();
    KeyedUpdates keyed(*runner_.rule_, gradients, agreed.forms, variables_);
    keyed.commit([&](const Variable& v) { return runner_.steps_whole_table(v); });
    runner_.keyed_ = std::move(keyed);
  }

  // Ends the step in one replica of each process.
  void finish(const StepPlan& plan, const Sorted& all) const {
    runner_.finish(plan, all.updated, all.averaged);
    if (const auto keyed = std::exchange(runner_.keyed_, std::nullopt)) keyed->finish();
  }

  // Returns false if the attachment is not accepted.
  bool step(const StepAgreement& agreement, const Communicator::Attachment* attachment) const {
    check_any_gradient(caller_, agreement.forms, variables_);
    StepPlan plan = runner_.plan_after(agreement.calls, agreement.learning_rate);
    Sorted all = sorted(plan, gradients_, variables_, agreement.forms);
    const bool keyed = updates_keyed(agreement);
    if (all.updated.empty() && !keyed) return true;
    const std::vector<double> shared = runner_.shared_values(plan);
    plan.step.shared = shared;
    runner_.complete(all.updated);
    if (keyed) runner_.append_keyed(*runner_.keyed_, context_.local_replica, all.updated);
    return step_replicated(
        communicator_, plan, *runner_.rule_, all.updated,
        [&] { as_leader([&] { finish(plan, all); }); }, attachment);
  }

  // The replicas of each process agree first. If they predict what all processes will agree on, the
  // proposals are sent along with the sums, and the step is made if all processes have predicted
  // the same. Otherwise the sums are discarded, and the step is made by the agreement.
  void run_in_processes() const {
    StepMemory& memory = runner_.step_memory_;
    StepProposal own = runner_.proposal(gradients_, variables_);
    const bool only_virtual = std::ranges::all_of(variables_, &Variable::is_virtual);
    communicator_.local_gather(encode_proposal(own, variables_), kLabel,
                               [&](std::span<const Bytes> local) {
                                 as_leader([&] { begin_in_process(local, only_virtual); });
                               });
    if (only_virtual) {
      check(memory.agreement);
      if (!variables_.empty()) check_any_gradient(caller_, memory.agreement.forms, variables_);
      return;
    }
    own.predicted = memory.predicted;
    const std::vector<std::byte> proposal = encode_proposal(own, variables_);
    const Communicator::Attachment attachment = {
        .mine = proposal, .accept = [&](std::span<const Bytes> all) {
          return memory.resolve(communicator_.placement(), all, variables_);
        }};
    // The copy is needed because resolve() overwrites memory.agreement during the exchange.
    if (memory.predicted != 0) {
      const StepAgreement prediction = memory.agreement;
      if (step(prediction, &attachment)) return;
    } else {
      // Without a prediction only the proposals are exchanged. A process that has predicted sends
      // its sums in the same collective, which are then discarded.
      communicator_.reduce_scatter_if({}, attachment, {}, {});
    }
    check(memory.agreement);
    communicator_.local_barrier(kLabel, [&] { as_leader([&] { begin(memory.agreement); }); });
    if (updates_keyed(memory.agreement)) commit_keyed(memory.agreement);
    step(memory.agreement, nullptr);
  }

  void begin_in_process(std::span<const Bytes> local, bool only_virtual) const {
    StepMemory& memory = runner_.step_memory_;
    // Errors of an earlier step of virtual variables are reported here.
    resolve_posted();
    memory.predict(local, variables_);
    // Ids are admitted by the agreement, before the sums are sent.
    if (memory.predicted != 0 && updates_keyed(memory.agreement)) memory.predicted = 0;
    if (only_virtual) {
      memory.posted =
          communicator_.post_gather(as_bytes(with_prediction(local, memory.predicted)), kLabel);
      memory.posted_variables = variables_;
      if (memory.predicted == 0) resolve_posted();
    }
    if (memory.predicted != 0 || only_virtual) begin(memory.agreement);
  }

  void resolve_posted() const {
    StepMemory& memory = runner_.step_memory_;
    if (!memory.posted) return;
    const auto all = communicator_.collect_gather(*std::exchange(memory.posted, std::nullopt));
    memory.resolve(communicator_.placement(), as_bytes(all), memory.posted_variables);
    check(memory.agreement);
  }

  static std::vector<Bytes> as_bytes(const std::vector<std::vector<std::byte>>& messages) {
    return {messages.begin(), messages.end()};
  }

  static constexpr char kLabel[] = "the variables of a step";
  StepRunner& runner_;
  const std::string caller_;
  const ReplicaContext& context_;
  const std::vector<Gradient>& gradients_;
  const std::vector<Variable>& variables_;
  Communicator& communicator_ = Strategy::current().communicator();
};

void StepRunner::append_keyed(const KeyedUpdates& keyed, size_t replica,
                              std::vector<StepVariable>& variables) const {
  const size_t others = variables.size();
  keyed.append(replica, variables);
  for (size_t i = others; i < variables.size(); ++i) {
    variables[i].weight_decay = weight_decay_of(variables[i].variable);
  }
}

void StepRunner::apply_replicated(const std::vector<Gradient>& gradients,
                                  const std::vector<Variable>& variables) {
  const ReplicaContext* context = current_replica_context();
  if (context == nullptr) {
    throw RuntimeError(class_name_, ".apply_gradients: must be called in the replicas of ",
                       Strategy::current().name(),
                       "; call it in the function passed to Strategy::run");
  }
  ReplicatedStep(*this, *context, gradients, variables).run();
}

StepProposal StepRunner::proposal(const std::vector<Gradient>& gradients,
                                  const std::vector<Variable>& variables) {
  const Communicator& communicator = Strategy::current().communicator();
  const bool starts =
      communicator.placement().processes() > 1 && current_replica_context()->local_replica == 0;
  StepProposal out;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    if (v.dtype() == DType::kFloat64) {
      throw NotImplementedError(class_name_, ".apply_gradients: several replicas train float32 ",
                                "variables only; ", v.path(), " is float64");
    }
    out.forms.push_back(form_of(gradients[i], steps_whole_table(v)));
    out.starts.push_back(starts ? checksum_of_start(v) : 0);
  }
  // Only one replica of each process evaluates the rate, because a callable may count its calls.
  if (current_replica_context()->local_replica == 0) {
    out.calls = calls();
    if (updates_after(out.calls)) out.learning_rate = learning_rate_(out.calls);
  }
  return out;
}

void StepRunner::complete(std::vector<StepVariable>& variables) const {
  for (StepVariable& v : variables) {
    v.weight_decay = weight_decay_of(v.variable);
    if (defers_rows(v.variable, v.form)) v.lazy = lazy_->find(v.variable);
    v.memory =
        v.lazy != nullptr ? v.lazy->memory() : memory_of(v.variable, slots_.slots(v.variable));
  }
}

// Creates missing slots, and makes all values that the step writes unique, so that writing in place
// changes no tensor that another handle holds.
void StepRunner::prepare(const std::vector<StepVariable>& updated,
                         const std::vector<Variable>& touched) {
  build(touched);
  if (calls() == 0) slots_.restart(touched);
  std::vector<uint64_t> deferred;
  for (const StepVariable& v : updated) {
    if (defers_rows(v.variable, v.form)) deferred.push_back(v.variable.id());
  }
  for (const Variable& variable : touched) {
    const std::vector<Variable> slots = this->slots(variable);
    const bool defers = std::ranges::find(deferred, variable.id()) != deferred.end();
    // Rows may stay deferred to this optimizer, but not to another one: its LazyTable refers to the
    // current memory of the values, which this step may replace.
    if (!defers || !lazy_->owns_deferred_rows(variable))
      VariableStorage(variable).materialize_all();
    if (defers) continue;  // pack_lazy_rows makes these values unique
    VariableStorage(variable).make_unique();
    for (const Variable& slot : slots) VariableStorage(slot).make_unique();
  }
}

std::vector<SteppedTable> StepRunner::lazy_tables(const std::vector<StepVariable>& updated) const {
  std::vector<SteppedTable> out;
  for (const StepVariable& v : updated) {
    if (!defers_rows(v.variable, v.form)) continue;
    out.push_back(
        {.table = v.variable, .slots = slots_.slots(v.variable), .decays = decays(v.variable)});
  }
  return out;
}

// Does for the tables with deferred rows what prepare() does for the other variables.
void StepRunner::pack_lazy_rows(const std::vector<StepVariable>& updated) {
  if (lazy_ != nullptr) lazy_->pack(lazy_tables(updated));
}

// Returns the values of the shared slots in the step, which they also keep after it.
std::vector<double> StepRunner::shared_values(const StepPlan& plan) const {
  std::vector<double> out;
  for (const Variable& slot : shared_slots_) out.push_back(slot.read().item<double>());
  if (!out.empty() && plan.updates) rule_->step_shared(out, plan.step);
  return out;
}

// Performs the stages that follow the updates of all variables.
void StepRunner::finish(const StepPlan& plan, const std::vector<StepVariable>& updated,
                        const std::vector<Variable>& averaged) {
  for (const Variable& v : averaged) average_unchanged(plan, *rule_, v, slots_.slots(v));
  apply_constraints(updated);
  count_call(plan, updated);
}

// Returns what the processes compare to check that a variable starts with equal values everywhere;
// 0 for a variable that has slots, because it was compared in its first step, and for a table with
// dynamic ids, which compares itself.
uint64_t StepRunner::checksum_of_start(const Variable& variable) const {
  if (variable.is_virtual() || slots_.has(variable) || keyed_rows_of(variable) != nullptr) return 0;
  return checksum(variable.read());
}

// The last stage of a step: a stage that fails earlier leaves no count that other processes lack.
void StepRunner::count_call(const StepPlan& plan, const std::vector<StepVariable>& updated) {
  if (lazy_ != nullptr) {
    lazy_->end_step(plan.step, plan.weight_decay * plan.step.learning_rate, lazy_tables(updated));
  }
  for (size_t i = 0; i < plan.step.shared.size(); ++i) {
    VariableStorage(shared_slots_[i]).make_unique();
    VariableStorage(shared_slots_[i]).elements<double>()[0] = plan.step.shared[i];
  }
  VariableStorage(iterations_).make_unique();
  ++VariableStorage(iterations_).elements<int64_t>()[0];
}

}  // namespace keel
