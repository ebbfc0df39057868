// Variable: a named cell holding a Tensor that changes by assignment.
//
// read() returns the value of now; later assignments do not change it. An
// assignment writes in place when nobody holds the value read, and copies
// otherwise: dropping the tape before the update makes training copy-free.
//
// Under a strategy with several replicas the replicas of a process share one value, which is the
// same in all processes. What every replica changes for itself (batch statistics, metrics, random
// state) is a variable with synchronization kOnRead: each replica has its own value, and reading it
// outside the replicas combines them by `aggregation`, as in TensorFlow. Where the replicas are in
// several processes, that read is collective: all processes make it.
//
// Thread safety: any number of replicas may read at once. A shared value may be written by one
// thread while nobody reads it; optimizers see to that with barriers.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <keel/autodiff/gradient.h>

namespace keel {

enum class VariableSynchronization { kShared, kOnRead };
enum class VariableAggregation { kNone, kSum, kMean, kOnlyFirstReplica };

struct VariableOptions {
  std::string name = "variable";
  bool trainable = true;
  VariableSynchronization synchronization = VariableSynchronization::kShared;
  VariableAggregation aggregation = VariableAggregation::kNone;
  // What optimizers make of the value after each step; empty: nothing. Of its shape and dtype.
  std::function<Tensor(const Tensor&)> constraint = {};
};

// Rows of a variable that are behind until somebody needs them (OptimizerOptions::lazy_rows).
// Thread safe.
class DeferredRows {
 public:
  virtual ~DeferredRows() = default;
  virtual void materialize(
      std::span<const int64_t> ids) = 0;  // ids that are no rows are passed over
  virtual void bring_up_all() = 0;
};

class Variable {
  struct State;

 public:
  Variable() = default;  // empty, as before a layer is built
  Variable(Tensor initial, VariableOptions options);

  // A trainable zero of shape {1} that stands for parameters kept elsewhere: asking a
  // tape for its gradient is what runs the gradient of the ops that took it
  // (layers/embedding/tpu_embedding.h). Optimizers count a step for it and otherwise
  // leave it alone; files and checkpoints omit it.
  static Variable virtual_trainable(std::string name);

  explicit operator bool() const { return state_ != nullptr; }
  const std::string& name() const;  // "kernel"
  const std::string& path() const;  // "dense/kernel"; the name until a layer sets it
  void set_path(std::string path) const;
  const TensorSpec& spec() const;
  const Shape& shape() const { return spec().shape; }
  DType dtype() const { return spec().dtype; }
  bool trainable() const;
  bool is_virtual() const;
  VariableSynchronization synchronization() const;
  // Whether each of several replicas has a value, and reading outside of them gives the mean.
  bool averages_replicas() const;
  const std::function<Tensor(const Tensor&)>& constraint() const;

  // In a replica, its value (or that of a CombinedReads); outside, the combined one. Watched by
  // active tapes if trainable.
  // RuntimeError if a kOnRead variable without aggregation is read outside its replicas, or in a
  // replica that its strategy does not have.
  Tensor read() const;
  operator Tensor() const { return read(); }  // NOLINT: implicit
  // The same for who looks up rows, int32 or int64: others may be behind in the result, which may
  // be a view (Tensor::is_view). It is for ops::gather and ops::embedding_pool.
  Tensor read_rows(const Tensor& ids) const;

  // `value` must have this variable's shape and dtype (ValueError). In a replica of several,
  // only a kOnRead variable may be assigned (RuntimeError). Outside, a kOnRead variable takes the
  // value in every replica: divided by their number if it aggregates by sum.
  void assign(const Tensor& value) const;
  void assign_add(const Tensor& value) const;
  // Calls fn on the value; copies it first if it is shared. The rules of assign hold.
  void update(const std::function<void(Tensor& value)>& fn) const;

  // For optimizers, which write one shared value from several replicas between barriers: first
  // one of them makes the value unique, then each writes its own part of the elements.
  // Rows may wait in the elements, where every other access brings them up to date first.
  void make_value_unique() const;
  template <Element T>
  std::span<T> elements() const {
    return mutable_value().template mutable_data<T>();
  }

  // For optimizers that keep a value in memory of theirs: as it stands, perhaps a view, and where
  // it is from now on, of the same shape and dtype. read() copies it out.
  const Tensor& value_in_place() const;
  void move_value(Tensor value) const;

  // Null: no rows wait.
  void set_waiting_rows(std::shared_ptr<DeferredRows> rows) const;
  const std::shared_ptr<DeferredRows>& deferred_rows() const;
  void bring_up_all() const;

  uint64_t id() const;  // identity: copies of a handle have the same id
  friend bool operator==(const Variable& a, const Variable& b) { return a.state_ == b.state_; }

  // A handle that does not keep the variable.
  class Weak {
   public:
    explicit Weak(const Variable& variable) : state_(variable.state_) {}
    Variable lock() const { return Variable(state_.lock()); }  // empty if it is gone

   private:
    std::weak_ptr<State> state_;
  };

 private:
  explicit Variable(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const;           // RuntimeError if empty
  Tensor read_as_is() const;      // rows that wait included; perhaps a view
  Tensor& mutable_value() const;  // this replica's, or the shared one
  std::shared_ptr<State> state_;
};

// The replicas that a kOnRead variable has values for.
struct VariableReplicas {
  int local = 1;  // in this process
  int all = 1;    // over all processes
  // Given the values of this process, returns those of all replicas, in order. Collective over the
  // processes. Empty if there is one.
  std::function<std::vector<Tensor>(std::span<const Tensor> local)> gather = {};
};

// While alive, kOnRead variables made on this thread are for these replicas; set by strategy
// scopes.
class ReplicatedVariables {
 public:
  explicit ReplicatedVariables(int replicas);  // of one process
  explicit ReplicatedVariables(std::shared_ptr<const VariableReplicas> replicas);
  ~ReplicatedVariables();
  ReplicatedVariables(const ReplicatedVariables&) = delete;
  ReplicatedVariables& operator=(const ReplicatedVariables&) = delete;
};

}  // namespace keel
