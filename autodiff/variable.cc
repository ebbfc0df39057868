#include <keel/autodiff/variable.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include <keel/autodiff/internal/tree_sum.h>
#include <keel/autodiff/internal/variable_snapshot.h>
#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>

namespace keel {
namespace {

// The replicas of each ReplicatedVariables alive on this thread, the innermost last. Scopes may end
// in any order.
struct ReplicasOfScope {
  const ReplicatedVariables* scope;
  std::shared_ptr<const VariableReplicas> replicas;
};
thread_local std::vector<ReplicasOfScope> replicas_of_scopes;

// Returns the replicas of the innermost scope, or null outside of any scope.
std::shared_ptr<const VariableReplicas> current_replicas() {
  return replicas_of_scopes.empty() ? nullptr : replicas_of_scopes.back().replicas;
}

uint64_t next_variable_id() {
  static std::atomic<uint64_t> counter = 1;
  return counter++;
}

bool all_equal(std::span<const Tensor> values) {
  return std::ranges::all_of(
      values, [&](const Tensor& v) { return std::ranges::equal(v.raw(), values[0].raw()); });
}

Tensor divided(const Tensor& value, size_t by) {
  if (by == 1) return value;
  if (!is_floating(value.dtype())) {
    throw TypeError("Variable: aggregation over replicas requires a floating dtype, received ",
                    value.dtype());
  }
  return ops::scale(value, 1.0 / static_cast<double>(by));
}

}  // namespace

struct Variable::State {
  VariableOptions options;
  std::string path;
  TensorSpec spec;
  bool is_virtual = false;
  std::vector<Tensor> values;                        // one, or one per local replica
  std::shared_ptr<const VariableReplicas> replicas;  // null: one replica, or all share the value
  std::shared_ptr<DeferredRows> deferred;
  const uint64_t id = next_variable_id();

  bool on_read() const { return options.synchronization == VariableSynchronization::kOnRead; }

  // Position of the current replica's value; -1 in cross-replica code with several values.
  int position() const {
    const ReplicaContext* context = current_replica_context();
    if (context == nullptr) return replicas == nullptr || replicas->all == 1 ? 0 : -1;
    if (values.size() == 1) return 0;
    if (context->local_replicas != static_cast<int>(values.size())) {
      throw RuntimeError("Variable ", path, ": created for ", values.size(),
                         " replicas but used under a strategy with ", context->local_replicas,
                         "; create it in the scope of that strategy");
    }
    return context->local_replica;
  }

  Tensor combined() const {
    const NoGradient pause;
    if (options.aggregation == VariableAggregation::kNone) {
      throw RuntimeError("Variable ", path,
                         ": each replica has its own value and no aggregation is set to combine "
                         "them; set VariableOptions::aggregation or read it inside a replica");
    }
    const std::vector<Tensor> all = replicas->gather ? replicas->gather(values) : values;
    switch (options.aggregation) {
      case VariableAggregation::kSum:
        return tree_sum(all);
      case VariableAggregation::kMean:
        // A mean of equal values may round. Return the value itself, so that reading gives exactly
        // what assign() or a checkpoint set.
        if (is_floating(spec.dtype) && all_equal(all)) return all[0];
        return divided(tree_sum(all), all.size());
      default:
        return all[0];
    }
  }

  void check_assignable(const TensorSpec& value) const {
    if (value.shape != spec.shape || value.dtype != spec.dtype) {
      throw ValueError("Variable ", path, ": cannot assign ", value.dtype, value.shape,
                       " to a variable of ", spec.dtype, spec.shape,
                       "; assign a value of its dtype and shape");
    }
  }

  void check_not_keyed() const {
    if (dynamic_cast<const KeyedRows*>(deferred.get()) == nullptr) return;
    throw ValueError("Variable ", path,
                     ": the rows of a table with dynamic ids cannot be assigned by number; use "
                     "DynamicTable::assign_rows");
  }

  void check_may_write() const {
    const ReplicaContext* context = current_replica_context();
    if (context != nullptr && context->replicas > 1 && !on_read()) {
      throw RuntimeError("Variable ", path,
                         ": the replicas share this value; only a variable with synchronization "
                         "kOnRead may be assigned inside a replica");
    }
  }
};

Variable::~Variable() = default;
Variable::Variable(const Variable& other) = default;
Variable& Variable::operator=(const Variable& other) = default;
Variable& Variable::operator=(Variable&& other) noexcept = default;

Variable::Variable(Tensor initial, VariableOptions options) : state_(std::make_shared<State>()) {
  if (initial.is_symbolic())
    throw ValueError("Variable: the initial value is symbolic; pass an eager tensor");
  State& s = *state_;
  s.path = options.name;
  s.options = std::move(options);
  s.spec = initial.spec();
  if (s.on_read()) {
    initial = initial.contiguous();
    s.replicas = current_replicas();
  }
  s.values.assign(s.replicas == nullptr ? 1 : s.replicas->local, initial);
}

Variable Variable::virtual_trainable(std::string name) {
  Variable out(Tensor::zeros({1}), {.name = std::move(name)});
  out.state_->is_virtual = true;
  return out;
}

Variable::State& Variable::state() const {
  if (state_ == nullptr)
    throw RuntimeError("Variable: the handle is empty; build the layer before using its variables");
  const Variable* const copy = VariableSnapshot::current(state_->id);
  return copy == nullptr ? *state_ : *copy->state_;
}

const std::string& Variable::name() const { return state().options.name; }
const std::string& Variable::path() const { return state().path; }
void Variable::set_path(std::string path) const { state().path = std::move(path); }
const TensorSpec& Variable::spec() const { return state().spec; }
bool Variable::trainable() const { return state().options.trainable; }
const RowRegularization& Variable::row_regularization() const { return state().options.rows; }

const std::function<Tensor(const Tensor&)>& Variable::constraint() const {
  return state().options.constraint;
}
bool Variable::averages_replicas() const {
  const State& s = state();
  return s.replicas != nullptr && s.replicas->all > 1 &&
         s.options.aggregation == VariableAggregation::kMean;
}
bool Variable::is_virtual() const { return state().is_virtual; }
VariableSynchronization Variable::synchronization() const {
  return state().options.synchronization;
}
uint64_t Variable::id() const {
  if (state_ == nullptr) state();  // throws
  return state_->id;  // the original's id, even if a snapshot's copy replaces its value
}

Tensor Variable::read() const {
  VariableStorage(*this).materialize_all();
  return read_as_is().contiguous();
}

Tensor Variable::read_as_is() const {
  const State& s = state();
  const int position = s.position();
  if (position < 0) return s.combined();
  if (s.replicas != nullptr) {
    if (const Tensor* const combined = CombinedReads::current(state_->id)) return *combined;
  }
  const Tensor& value = s.values[position];
  if (s.options.trainable) GradientTape::on_read(s.id, value);
  return value;
}

Tensor Variable::read_rows(const Tensor& ids) const {
  const std::shared_ptr<DeferredRows>& deferred = state().deferred;
  if (deferred == nullptr) return read_as_is();
  if (ids.is_symbolic() || (ids.dtype() != DType::kInt64 && ids.dtype() != DType::kInt32)) {
    return read();
  }
  deferred->materialize(
      (ids.dtype() == DType::kInt64 ? ids : ids.cast(DType::kInt64)).data<int64_t>());
  return read_as_is();
}

void Variable::assign(const Tensor& value) const {
  State& s = state();
  s.check_not_keyed();
  s.check_assignable(value.spec());
  s.check_may_write();
  // Deferred updates also apply to slot variables. Apply them all first, or the slots would lose
  // these steps.
  VariableStorage(*this).materialize_all();
  const int position = s.position();
  if (position >= 0) {
    s.values[position] = value.aliased();
    return;
  }
  const bool sums = s.options.aggregation == VariableAggregation::kSum;
  const Tensor each = sums ? divided(value, s.replicas->all) : value;
  for (Tensor& v : s.values) v = each.aliased();
}

void Variable::assign_add(const Tensor& value) const {
  const NoGradient pause;
  assign(ops::add(read(), value));
}

void Variable::update(FunctionRef<void(Tensor& value)> fn) const {
  State& s = state();
  s.check_not_keyed();
  s.check_may_write();
  if (s.position() < 0) {
    throw RuntimeError("Variable ", s.path,
                       ": update() was called outside the replicas that hold its values; call it "
                       "inside a replica or use assign()");
  }
  const VariableStorage storage(*this);
  storage.materialize_all();
  storage.make_unique();
  fn(s.values[s.position()]);
}

Tensor& VariableStorage::mutable_value() const {
  Variable::State& s = variable_.state();
  return s.values.at(s.position());
}

void VariableStorage::make_unique() const {
  Tensor& value = mutable_value();
  // clone() would leave the viewed memory, and the deferred updates of its rows would be lost.
  if (value.is_view()) materialize_all();
  if (!value.unique()) value = value.clone();
}

void VariableStorage::replace(Tensor value) const { mutable_value() = std::move(value); }

KeyedRows* VariableStorage::keyed_rows() const {
  return dynamic_cast<KeyedRows*>(variable_.state().deferred.get());
}

void VariableStorage::replace_rows(Tensor value) const {
  variable_.state().spec.shape = value.shape();
  mutable_value() = std::move(value);
}

void VariableStorage::set_deferred_rows(std::shared_ptr<DeferredRows> rows) const {
  variable_.state().deferred = std::move(rows);
}

const std::shared_ptr<DeferredRows>& VariableStorage::deferred_rows() const {
  return variable_.state().deferred;
}

void VariableStorage::materialize_all() const {
  DeferredRows* const deferred = variable_.state().deferred.get();
  if (deferred != nullptr) deferred->materialize_all();
}

ReplicatedVariables::ReplicatedVariables(int replicas)
    : ReplicatedVariables(std::make_shared<const VariableReplicas>(
          VariableReplicas{.local = replicas, .all = replicas})) {}
ReplicatedVariables::ReplicatedVariables(std::shared_ptr<const VariableReplicas> replicas) {
  replicas_of_scopes.push_back({this, std::move(replicas)});
}
ReplicatedVariables::~ReplicatedVariables() {
  std::erase_if(replicas_of_scopes, [this](const ReplicasOfScope& s) { return s.scope == this; });
}

}  // namespace keel

template std::vector<keel::Variable>::~vector();
template std::vector<keel::Variable>::vector(const std::vector<keel::Variable>& other);
