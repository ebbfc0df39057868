// KeyedVariable: a table with dynamic ids that is a trainable variable.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/distribute/embedding/internal/keyed_table.h>
#include <keel/layers/embedding/tables/internal/bags.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/layer_types.h>

namespace keel {

// Looks up the ids of `bags` without an update. Replaces them by row numbers of the result, float32
// [distinct ids, dim].
Tensor inference_rows(const distribute::KeyedTable& table, FeatureBags& bags);

// A lookup while a tape is active is a training lookup. Its rows are a differentiable function of
// the variable, whose gradient names the lookup and its ids by opaque row ids. An update counts the
// ids of the lookups that the gradients of the replicas name. If the replicas run in several
// processes, each holds the whole table and admits, updates and evicts the ids of all, in the order
// of the replicas, so that the tables stay equal.
class KeyedVariable final : public KeyedRows, public std::enable_shared_from_this<KeyedVariable> {
 public:
  // Makes a table and its variable, which is named like the table unless `name` is set. The
  // variable owns the table.
  static std::pair<Variable, std::shared_ptr<KeyedVariable>> create(const TableConfig& table,
                                                                    const std::string& name = {});

  Variable variable() const { return variable_.lock(); }  // empty once the variable is destroyed
  distribute::KeyedTable& table() const { return *table_; }
  // Looks up the ids of `bags`. Replaces them by row numbers of the result, float32
  // [distinct ids, dim]. Replicas may call it concurrently.
  Tensor look_up(FeatureBags& bags);

  void materialize(std::span<const int64_t>) override {}  // lookups do not read the value
  void materialize_all() override;
  void set_slots(const std::vector<Slot>& slots) override;
  void plan_update(std::vector<IndexedSlices> gradients) override;
  Update commit_update(bool all_rows) override;
  void finish_update() override;

 private:
  using Lookup = std::shared_ptr<distribute::KeyedLookup>;

  KeyedVariable(const TableConfig& table, const Variable& variable);
  std::unique_ptr<distribute::KeyedTable> made(const std::vector<Slot>& slots) const;
  std::vector<Lookup> lookups_named_by(const std::vector<IndexedSlices>& gradients) const;
  std::vector<Lookup> with_other_processes(const std::vector<Lookup>& own,
                                           distribute::ProcessGroup& group) const;
  Gradient gradient_of(const Gradient& of_rows, int64_t ticket, const Shape& shape) const;
  std::pair<std::vector<int64_t>, std::vector<int64_t>> targets_of(
      const IndexedSlices& gradient) const;
  IndexedSlices contributions_of(const IndexedSlices& gradient) const;
  IndexedSlices all_rows_of(const IndexedSlices& gradient) const;

  const TableConfig config_;
  const distribute::InitialRows initial_;
  distribute::ProcessGroup* const copies_;  // the processes of the replicas; null if it is one
  std::unique_ptr<distribute::KeyedTable> table_;
  const Variable::Weak variable_;
  std::mutex mutex_;  // guards the next two members while replicas look up
  int64_t next_ticket_ = 0;
  std::deque<std::pair<int64_t, Lookup>> lookups_;  // training lookups by ticket, oldest first
  // Between plan_update() and finish_update().
  std::vector<IndexedSlices> gradients_;  // by replica of this process
  std::vector<Lookup> planned_;
};

// Returns the entries of the table with this name for checkpoints (dynamic_entries.h).
std::vector<StateEntry> keyed_entries(const std::string& name,
                                      const std::shared_ptr<KeyedVariable>& keyed);

}  // namespace keel
