#include "optimizers/optimizer.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <tuple>

#include "autodiff/replica_context.h"
#include "autodiff/tape.h"
#include "distribute/embedding/row_exchange.h"
#include "distribute/strategy.h"
#include "framework/kernels/unique.h"
#include "framework/parallel.h"
#include "optimizers/step_agreement.h"

namespace keel {
namespace {

using distribute::Communicator;
using distribute::Strategy;

constexpr int64_t kGrain = 16384;  // elements that one worker updates at a time

// As Keras makes "rm_sprop" of "RMSprop".
std::string snake_case(const std::string& name) {
  const auto upper = [&](size_t i) { return std::isupper(static_cast<unsigned char>(name[i])); };
  const auto lower = [&](size_t i) {
    return i < name.size() && std::islower(static_cast<unsigned char>(name[i]));
  };
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(i) && (lower(i - 1) || lower(i + 1))) out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return out;
}

int64_t rows_of(const Variable& variable) {
  return variable.shape().rank() == 0 ? 1 : variable.shape()[0];
}

int64_t row_size(const Variable& variable) {
  return variable.shape().size() / std::max<int64_t>(1, rows_of(variable));
}

void check_dtype(const std::string& who, const Variable& variable, const Tensor& gradient) {
  if (!is_floating(variable.dtype())) {
    throw TypeError(who, ": needs float32 or float64 variables, received ", variable.dtype(),
                    " for ", variable.path());
  }
  if (gradient.dtype() != variable.dtype()) {
    throw TypeError(who, ": the gradient of ", variable.path(), " must be ", variable.dtype(),
                    ", received ", gradient.dtype());
  }
}

void check_slices(const std::string& who, const Variable& variable, const IndexedSlices& slices) {
  const Shape& shape = variable.shape();
  check_dtype(who, variable, slices.values);
  if (slices.ids.dtype() != DType::kInt64) {
    throw TypeError(who, ": the row ids for ", variable.path(), " must be int64, received ",
                    slices.ids.dtype());
  }
  if (slices.dense_shape != shape || shape.rank() == 0 || slices.ids.rank() != 1 ||
      slices.values.shape() != shape.with(0, slices.ids.size())) {
    throw ValueError(who, ": the gradient of ", variable.path(), " ", shape,
                     " must be rows of it, received ids ", slices.ids.shape(), " and values ",
                     slices.values.shape(), " of ", slices.dense_shape);
  }
  for (const int64_t id : slices.ids.data<int64_t>()) {
    if (id < 0 || id >= shape[0]) {
      throw ValueError(who, ": row ids for ", variable.path(), " must be in [0, ", shape[0],
                       "), received ", id);
    }
  }
}

void check_gradient(const std::string& who, const Variable& variable, const Gradient& gradient) {
  if (!gradient) return;
  if (gradient.is_slices()) {
    check_slices(who, variable, gradient.slices());
    return;
  }
  const Tensor dense = gradient.dense();
  check_dtype(who, variable, dense);
  if (dense.shape() != variable.shape()) {
    throw ValueError(who, ": the gradient of ", variable.path(), " must have its shape ",
                     variable.shape(), ", received ", dense.shape());
  }
}

void check_arguments(const std::string& who, const std::vector<Gradient>& gradients,
                     const std::vector<Variable>& variables) {
  if (gradients.size() != variables.size()) {
    throw ValueError(who, ": needs one gradient for each variable, received ", gradients.size(),
                     " gradients and ", variables.size(), " variables");
  }
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < variables.size(); ++i) {
    ids.push_back(variables[i].id());
    check_gradient(who, variables[i], gradients[i]);
  }
  std::ranges::sort(ids);
  if (std::ranges::adjacent_find(ids) != ids.end()) {
    throw ValueError(who, ": a variable stands in the list twice");
  }
}

void check_any_gradient(const std::string& who, const std::vector<Form>& forms,
                        const std::vector<Variable>& variables) {
  if (std::ranges::any_of(forms, [](Form f) { return f != Form::kNone; })) return;
  std::string paths;
  for (const Variable& v : variables) paths += (paths.empty() ? "" : ", ") + v.path();
  throw ValueError(who, ": needs a gradient for at least one variable, received none for ", paths);
}

// Applies a rule to runs of a variable's elements. Not for several threads: each takes a copy.
template <class T>
class Updater {
 public:
  Updater(const UpdateRule& rule, const Step& step, const Variable& variable,
          const std::vector<Variable>& slots)
      : rule_(rule), step_(step), value_(variable.elements<T>().data()) {
    for (const Variable& slot : slots) slots_.push_back(slot.elements<T>().data());
    at_.resize(slots_.size());
  }

  void operator()(int64_t begin, const T* gradient, int64_t n) {
    for (size_t s = 0; s < slots_.size(); ++s) at_[s] = slots_[s] + begin;
    rule_.update(value_ + begin, gradient, at_.data(), n, step_);
  }

 private:
  const UpdateRule& rule_;
  const Step& step_;
  T* const value_;
  std::vector<T*> slots_, at_;
};

// Updates row ids[i] by row i of `values`.
template <class T>
void update_rows(const Updater<T>& updater, std::span<const int64_t> ids, const T* values,
                 int64_t dim) {
  const int64_t grain = std::max<int64_t>(1, kGrain / dim);
  parallel_for(static_cast<int64_t>(ids.size()), grain, [&](int64_t begin, int64_t end) {
    Updater<T> update = updater;
    for (int64_t i = begin; i < end; ++i) update(ids[i] * dim, values + i * dim, dim);
  });
}

// The rows of a sparse gradient summed by id.
template <class T>
struct SummedRows {
  std::vector<int64_t> ids;
  std::vector<T> values;
};

template <class T>
SummedRows<T> sum_by_id(const IndexedSlices& slices, int64_t dim) {
  kernels::GroupedIds groups;
  kernels::group_ids(slices.ids.data<int64_t>(), groups);
  SummedRows<T> out;
  out.values.resize(groups.distinct.size() * dim);
  kernels::sum_groups(groups, slices.values.data<T>().data(), dim, out.values.data());
  out.ids = std::move(groups.distinct);
  return out;
}

template <class T>
void update_alone(const Updater<T>& updater, const Variable& variable, const Gradient& gradient,
                  Form form) {
  const int64_t dim = row_size(variable);
  if (dim == 0) return;
  if (form == Form::kRows) {
    const SummedRows<T> rows = sum_by_id<T>(gradient.slices(), dim);
    update_rows(updater, rows.ids, rows.values.data(), dim);
    return;
  }
  const Tensor dense = gradient.dense();
  const T* values = dense.data<T>().data();
  parallel_for(dense.size(), kGrain, [&](int64_t begin, int64_t end) {
    Updater<T> update = updater;
    update(begin, values + begin, end - begin);
  });
}

// A variable of a step of several replicas.
struct Shared {
  Variable variable;
  Gradient gradient;  // of this replica
  Updater<float> update;
};

void update_dense_together(Communicator& communicator, std::vector<Shared>& all) {
  if (all.empty()) return;
  std::vector<Tensor> gradients;
  std::vector<std::span<const float>> pieces;
  std::vector<std::span<float>> values;
  for (const Shared& s : all) {
    gradients.push_back(s.gradient ? s.gradient.dense() : Tensor::zeros(s.variable.shape()));
    pieces.push_back(gradients.back().data<float>());
    values.push_back(s.variable.elements<float>());
  }
  communicator.reduce_scatter(pieces, [&](size_t piece, int64_t begin, std::span<const float> sum) {
    all[piece].update(begin, sum.data(), static_cast<int64_t>(sum.size()));
  });
  communicator.share(values);
}

void update_rows_together(Communicator& communicator, std::vector<Shared>& all) {
  if (all.empty()) return;
  std::vector<SummedRows<float>> mine;
  for (const Shared& s : all) {
    mine.push_back(s.gradient ? sum_by_id<float>(s.gradient.slices(), row_size(s.variable))
                              : SummedRows<float>{});
  }
  std::vector<distribute::OutgoingRows> tables;
  for (size_t i = 0; i < all.size(); ++i) {
    tables.push_back(
        {.ids = mine[i].ids, .values = mine[i].values, .dim = row_size(all[i].variable)});
  }
  std::vector<int64_t> dims;
  for (const distribute::OutgoingRows& table : tables) dims.push_back(table.dim);
  const std::vector<distribute::OwnedRows> owned = distribute::share_owned_rows(
      communicator, distribute::sum_rows_to_owners(communicator, tables), dims);
  for (size_t i = 0; i < all.size(); ++i) {
    if (tables[i].dim == 0) continue;
    update_rows(all[i].update, owned[i].ids, owned[i].values.data(), tables[i].dim);
  }
}

// Those that a step changes.
std::vector<Variable> moved(const std::vector<Variable>& variables,
                            const std::vector<Form>& forms) {
  std::vector<Variable> out;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (forms[i] != Form::kNone && !variables[i].is_virtual()) out.push_back(variables[i]);
  }
  return out;
}

std::vector<Variable> moved_densely(const std::vector<Variable>& variables,
                                    const std::vector<Form>& forms) {
  std::vector<Variable> out;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (forms[i] == Form::kDense && !variables[i].is_virtual()) out.push_back(variables[i]);
  }
  return out;
}

}  // namespace

Optimizer::Optimizer(std::string class_name, std::shared_ptr<const UpdateRule> rule,
                     LearningRate learning_rate, std::string name)
    : class_name_(std::move(class_name)),
      name_(name.empty() ? snake_case(class_name_) : std::move(name)),
      rule_(std::move(rule)),
      learning_rate_(std::move(learning_rate)),
      iterations_(Tensor::scalar<int64_t>(0), {.name = "iteration", .trainable = false}) {
  iterations_.set_path(name_ + "/iteration");
}

int64_t Optimizer::iterations() const { return iterations_.read().item<int64_t>(); }

void Optimizer::set_iterations(int64_t iterations) {
  if (iterations < 0) {
    throw ValueError(class_name_, ".set_iterations: must not be negative, received ", iterations);
  }
  iterations_.assign(Tensor::scalar(iterations));
}

double Optimizer::learning_rate() const { return learning_rate_(iterations()); }

void Optimizer::set_learning_rate(double rate) {
  if (!learning_rate_.number()) {
    throw RuntimeError(class_name_,
                       ".set_learning_rate: the rate is a schedule or a function, which alone "
                       "decides it");
  }
  learning_rate_ = rate;
}

void Optimizer::build(const std::vector<Variable>& variables) {
  const std::vector<Slot> slots = rule_->slots();
  for (const Variable& variable : variables) {
    if (!is_floating(variable.dtype())) {
      throw TypeError(class_name_, ".build: needs float32 or float64 variables, received ",
                      variable.dtype(), " for ", variable.path());
    }
  }
  const std::lock_guard lock(mutex_);
  for (const Variable& variable : variables) {
    if (variable.is_virtual() || slots_.contains(variable.id())) continue;
    std::vector<Variable> made;
    for (const Slot& slot : slots) {
      Tensor initial = variable.dtype() == DType::kFloat64
                           ? Tensor::full<double>(variable.shape(), slot.initial)
                           : Tensor::full(variable.shape(), static_cast<float>(slot.initial));
      made.emplace_back(std::move(initial), VariableOptions{.name = slot.name, .trainable = false});
      made.back().set_path(variable.path() + "/" + slot.name);
    }
    slots_.emplace(variable.id(), std::move(made));
  }
}

std::vector<Variable> Optimizer::slots(const Variable& variable) const {
  if (current_replica_context() == nullptr) make_slots_whole({variable});
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(variable.id());
  return found == slots_.end() ? std::vector<Variable>() : found->second;
}

void Optimizer::apply_gradients(const std::vector<Gradient>& gradients,
                                const std::vector<Variable>& variables) {
  const NoGradient pause;
  check_arguments(class_name_ + ".apply_gradients", gradients, variables);
  if (Strategy::current().num_replicas_in_sync() == 1) {
    apply_alone(gradients, variables);
  } else {
    apply_together(gradients, variables);
  }
}

void Optimizer::apply_alone(const std::vector<Gradient>& gradients,
                            const std::vector<Variable>& variables) {
  if (variables.empty()) return;
  std::vector<Form> forms;
  for (const Gradient& gradient : gradients) forms.push_back(form_of(gradient, *rule_));
  check_any_gradient(class_name_ + ".apply_gradients", forms, variables);
  const int64_t iteration = iterations();
  const Step step = {.learning_rate = learning_rate_(iteration), .iteration = iteration};
  prepare(moved(variables, forms));
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    if (forms[i] == Form::kNone || v.is_virtual()) continue;
    if (v.dtype() == DType::kFloat64) {
      update_alone(Updater<double>(*rule_, step, v, slots(v)), v, gradients[i], forms[i]);
    } else {
      update_alone(Updater<float>(*rule_, step, v, slots(v)), v, gradients[i], forms[i]);
    }
  }
  count_iteration();
}

void Optimizer::apply_together(const std::vector<Gradient>& gradients,
                               const std::vector<Variable>& variables) {
  const std::string who = class_name_ + ".apply_gradients";
  const ReplicaContext* context = current_replica_context();
  if (context == nullptr) {
    throw RuntimeError(who, ": needs to be called in the replicas of ", Strategy::current().name(),
                       ", received a call outside Strategy::run");
  }
  Communicator& communicator = Strategy::current().communicator();
  const bool leader = context->local_replica == 0;
  const bool alone = communicator.placement().processes() == 1;
  StepProposal proposal;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    if (v.dtype() == DType::kFloat64) {
      throw NotImplementedError(who, ": several replicas train float32 variables only, ", v.path(),
                                " is float64");
    }
    proposal.forms.push_back(form_of(gradients[i], *rule_));
    proposal.starts.push_back(leader && !alone ? checksum_of_start(v) : 0);
  }
  // One replica asks for the rate: a callable may count its calls.
  if (communicator.rank() == 0) {
    proposal.iteration = iterations();
    proposal.learning_rate = learning_rate_(proposal.iteration);
  }
  const StepAgreement agreement = agree_on_step(communicator, proposal, variables);
  const std::vector<Form>& forms = agreement.forms;
  const Step& step = agreement.step;
  // All are here, so nobody reads the variables any more; the barrier shows all the new slots.
  if (leader && agreement.refused.empty()) {
    const std::vector<Variable> all_moved = moved(variables, forms);
    prepare(all_moved);
    if (!alone) deal_slots(moved_densely(variables, forms), all_moved);
  }
  communicator.barrier("the slots of a step");
  if (!agreement.refused.empty()) throw RuntimeError(who, ": ", agreement.refused);
  if (variables.empty()) return;
  check_any_gradient(who, forms, variables);

  std::vector<Shared> dense, rows;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    if (forms[i] == Form::kNone || v.is_virtual()) continue;
    (forms[i] == Form::kDense ? dense : rows)
        .push_back({.variable = v,
                    .gradient = gradients[i],
                    .update = Updater<float>(*rule_, step, v, slots(v))});
  }
  update_dense_together(communicator, dense);
  update_rows_together(communicator, rows);
  if (leader) count_iteration();
  communicator.barrier();
}

// Makes missing slots, and sees to it that writing to all that a step writes changes no tensor
// that somebody holds.
void Optimizer::prepare(const std::vector<Variable>& variables) {
  build(variables);
  for (const Variable& variable : variables) {
    variable.make_value_unique();
    for (const Variable& slot : slots(variable)) slot.make_value_unique();
  }
}

uint64_t Optimizer::checksum_of_start(const Variable& variable) const {
  {
    const std::lock_guard lock(mutex_);
    if (variable.is_virtual() || slots_.contains(variable.id())) return 0;
  }
  return checksum(variable.read());
}

// Of a step of several processes that moves `moved`, and `dense` of them by dense gradients: each
// part of those goes to the process that updates it, whoever had it before. At most one exchange:
// the other replicas may still read what came in the one before.
void Optimizer::deal_slots(const std::vector<Variable>& dense,
                           const std::vector<Variable>& all_moved) {
  dealt_to_ = &Strategy::current().process_group();
  const Communicator& communicator = Strategy::current().communicator();
  std::vector<Variable> disturbed;
  bool known = dense.empty();
  for (const SlotDeal& deal : deals_) {
    if (deal.variables == dense && deal.first_replicas == communicator.placement().first) {
      known = true;
    } else if (deal.has_any(all_moved)) {
      disturbed.insert(disturbed.end(), deal.variables.begin(), deal.variables.end());
    }
  }
  make_slots_whole(disturbed);
  if (known) return;
  SlotDeal deal = {
      .variables = dense, .slots = {}, .first_replicas = communicator.placement().first};
  int64_t total = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const Variable& v : dense) {
      deal.slots.push_back(slots_.at(v.id()));
      total += v.shape().size();
    }
  }
  std::tie(deal.first, deal.end) = communicator.dealt_here(total);
  deals_.push_back(std::move(deal));
}

void Optimizer::make_slots_whole(const std::vector<Variable>& variables) const {
  const auto some = std::ranges::stable_partition(
      deals_, [&](const SlotDeal& deal) { return !deal.has_any(variables); });
  if (some.empty()) return;
  share_slots(*dealt_to_, {some.begin(), some.end()});
  deals_.erase(some.begin(), some.end());
}

void Optimizer::count_iteration() {
  iterations_.make_value_unique();
  ++iterations_.elements<int64_t>()[0];
}

}  // namespace keel
