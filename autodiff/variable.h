// Variable: a named cell that holds a Tensor and changes by assignment.
//
// read() returns the current value; later assignments do not change the returned tensor. An
// assignment writes in place if no other handle holds the value, and copies otherwise. Training
// therefore copies nothing if the tape is destroyed before the update.
//
// Under a strategy with several replicas, the replicas of a process share one value, which is the
// same in all processes. State that every replica changes on its own (batch statistics, metrics,
// random state) is a variable with synchronization kOnRead: each replica has its own value, and
// reading the variable outside the replicas combines the values by `aggregation`, as in TensorFlow.
// If the replicas run in several processes, that read is collective: every process must make it.
//
// Thread safety: any number of replicas may read concurrently. A shared value may be written by one
// thread while no other thread reads it; optimizers ensure this with barriers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/autodiff/operation.h>
#include <keel/framework/base/function_ref.h>

namespace keel {

// Selects whether the replicas of a process share one value or each has its own.
enum class VariableSynchronization {
  kShared,  // one value
  kOnRead   // a value for each replica; reads outside the replicas combine them
};
// Selects how a read outside the replicas combines the values of a kOnRead variable.
enum class VariableAggregation {
  kNone,             // such a read throws RuntimeError
  kSum,              // the sum of the replicas' values
  kMean,             // their mean
  kOnlyFirstReplica  // the value of replica 0
};

// What optimizers apply to the rows of a variable that a sparse gradient (IndexedSlices) contains,
// and to no other rows. A dense gradient contains all rows. 0 turns a member off.
struct RowRegularization {
  // Adds 2 l2 w to the gradient of a row w, the gradient of the penalty l2 |w|^2, after clipping.
  double l2 = 0;
  // Scales a row whose Euclidean norm exceeds this value down to it, after the update.
  double max_norm = 0;
};

// Options of a Variable.
struct VariableOptions {
  std::string name = "variable";  // the last part of the path
  bool trainable = true;          // tapes watch it, and optimizers may update it
  // Selects whether the replicas share one value.
  VariableSynchronization synchronization = VariableSynchronization::kShared;
  // Selects how a read outside the replicas combines their values.
  VariableAggregation aggregation = VariableAggregation::kNone;
  // Function that optimizers apply to the value after each step; empty means none. It returns a
  // tensor of the variable's shape and dtype.
  std::function<Tensor(const Tensor&)> constraint = {};
  RowRegularization rows = {};  // of the rows of the first axis
};

// A handle to a variable. Copies of a handle refer to the same variable.
class Variable {
  struct State;

 public:
  Variable() = default;  // empty, as a layer's variables are before the layer is built
  // Copies and moves of a handle refer to the same variable.
  ~Variable();
  Variable(const Variable& other);
  Variable(Variable&& other) noexcept = default;
  Variable& operator=(const Variable& other);
  Variable& operator=(Variable&& other) noexcept;
  // Creates a variable with the given initial value. Throws ValueError if `initial` is symbolic.
  Variable(Tensor initial, VariableOptions options);

  // Returns a virtual variable: a trainable zero of shape {1} that stands for parameters stored
  // elsewhere. Requesting its gradient from a tape runs the gradient of the ops that used it
  // (layers/embedding/tpu_embedding.h). Optimizers count a step for it but never update it, and
  // model files and checkpoints omit it.
  static Variable virtual_trainable(std::string name);

  explicit operator bool() const { return state_ != nullptr; }
  const std::string& name() const;        // "kernel"
  const std::string& path() const;        // "dense/kernel"; equal to the name until a layer sets it
  void set_path(std::string path) const;  // called by layers
  // Properties of the value and of VariableOptions.
  const TensorSpec& spec() const;
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }
  bool trainable() const;
  bool is_virtual() const;
  VariableSynchronization synchronization() const;
  // Returns true if each of several replicas has its own value and a read outside of them returns
  // their mean.
  bool averages_replicas() const;
  const std::function<Tensor(const Tensor&)>& constraint() const;  // empty if there is none
  // Penalties and bounds of the rows that an update touches.
  const RowRegularization& row_regularization() const;

  // Inside a replica, returns that replica's value, or the value of an active CombinedReads.
  // Outside, returns the combined value. Active tapes watch the result if the variable is
  // trainable. Throws RuntimeError if a kOnRead variable without aggregation is read outside its
  // replicas, or if a kOnRead variable is read by a replica of a strategy with another number of
  // replicas.
  Tensor read() const;
  operator Tensor() const { return read(); }  // NOLINT: implicit
  // Returns the value as read() does, but guarantees only the rows `ids` (int32 or int64) to be up
  // to date. Other rows may have deferred updates, and the result may be a view (Tensor::is_view).
  // Pass it to ops::gather and ops::embedding_pool.
  Tensor read_rows(const Tensor& ids) const;

  // Sets the value, which must have this variable's shape and dtype (ValueError otherwise). Inside
  // one of several replicas, only a kOnRead variable may be assigned (RuntimeError otherwise).
  // Outside the replicas, a kOnRead variable sets the value in every replica, divided by the number
  // of replicas if it aggregates by sum.
  void assign(const Tensor& value) const;
  // Assigns read() + value.
  void assign_add(const Tensor& value) const;
  // Calls fn on the value to modify it in place, after copying the value if other handles hold it.
  // The rules of assign() hold. Throws RuntimeError for a kOnRead variable of several replicas
  // outside of them.
  void update(FunctionRef<void(Tensor& value)> fn) const;

  uint64_t id() const;  // identity: copies of a handle have the same id
  friend bool operator==(const Variable& a, const Variable& b) { return a.state_ == b.state_; }

  // A handle that does not keep the variable alive.
  class Weak {
   public:
    // Refers to the variable without owning it.
    explicit Weak(const Variable& variable) : state_(variable.state_) {}
    Variable lock() const { return Variable(state_.lock()); }  // empty if the variable is destroyed

   private:
    std::weak_ptr<State> state_;
  };

 private:
  friend class VariableStorage;
  explicit Variable(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const;       // throws RuntimeError if the handle is empty
  Tensor read_as_is() const;  // without applying deferred updates; possibly a view
  std::shared_ptr<State> state_;
};

// The replicas that a kOnRead variable has values for.
struct VariableReplicas {
  int local = 1;  // in this process
  int all = 1;    // over all processes
  // Takes the values of this process and returns those of all replicas, in order. The call is
  // collective over the processes. Empty if there is only one process.
  std::function<std::vector<Tensor>(std::span<const Tensor> local)> gather = {};
};

// While a ReplicatedVariables is alive, kOnRead variables created on this thread get a value for
// each of these replicas. Strategy scopes set it.
class ReplicatedVariables {
 public:
  explicit ReplicatedVariables(int replicas);  // all in this process
  // Replicas of several processes.
  explicit ReplicatedVariables(std::shared_ptr<const VariableReplicas> replicas);
  ~ReplicatedVariables();
  ReplicatedVariables(const ReplicatedVariables&) = delete;
  ReplicatedVariables& operator=(const ReplicatedVariables&) = delete;
};

}  // namespace keel

extern template std::vector<keel::Variable>::~vector();
extern template std::vector<keel::Variable>::vector(const std::vector<keel::Variable>& other);
