// LazyTable: a table and its slots whose rows may lag behind the steps of their optimizer.
//
// A step by IndexedSlices updates the rows that they name. The other rows are deferred, and catch
// up with the missed steps before they are updated next or read. The table and its slots hold this
// object (VariableStorage::set_deferred_rows), keep it alive, and call it before their values are
// accessed. A row whose slots are all zero needs no catch-up; only its step count changes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/autodiff/variable.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/framework/kernels/update_rules/step_history.h>
#include <keel/optimizers/step/variable_memory.h>

namespace keel {

// The deferred rows of one table. materialize() and materialize_all() are thread safe; the other
// functions require that the values are not accessed meanwhile.
class LazyTable final : public DeferredRows, public std::enable_shared_from_this<LazyTable> {
 public:
  // All rows start with all `steps` so far applied.
  LazyTable(std::shared_ptr<kernels::StepHistory> steps, const Variable& table);

  // Interleaves the rows of the table and its slots in memory, unless they already are. Call it
  // before a step, while the values are not accessed and no rows are deferred to another LazyTable.
  void pack(const std::vector<Variable>& slots);
  const VariableMemory& memory() const { return memory_; }
  // Applies to `rows` the steps that they missed before the current one, and counts the current one
  // for them. Call it before the rows are updated. Several threads may call it at once for
  // different rows.
  void step_rows(std::span<const int64_t> rows);
  // Ends a step of this table by rows, which is the last of the steps. All rows that it did not
  // update are deferred.
  void end_step(bool decays);
  // Returns true if some rows have missed steps.
  bool has_deferred_rows() const { return min_row_steps_ != table_steps_; }
  // Returns false if the table has been destroyed.
  bool has_table() const { return static_cast<bool>(table_.lock()); }
  // Catches up the slots of a table that has been destroyed, which keep the memory alive. Without
  // slots the memory is gone too, and there is nothing to do.
  void materialize_slots();

  // Catches up these rows, or all rows. Ids out of range are ignored.
  void materialize(std::span<const int64_t> ids) override;
  void materialize_all() override;

 private:
  static constexpr int64_t kRowsOfStripe = 256;  // consecutive rows
  static constexpr size_t kStripes = 16;
  // Returns the stripe of any id; ids out of range have a stripe too.
  static size_t stripe_of(int64_t id) {
    return static_cast<uint64_t>(id) / kRowsOfStripe % kStripes;
  }
  struct ByStripe {
    kernels::ScratchVector<int64_t> ids;
    std::array<size_t, kStripes + 1> starts = {};
  };
  static ByStripe by_stripe(std::span<const int64_t> ids);

  using Rows = std::span<const kernels::StaleRow>;
  // A range of steps of this table, all of them by rows.
  struct Run {
    int64_t begin = 0, end = 0;
    bool decays = false;
  };

  bool is_row(int64_t id) const { return id >= 0 && id < rows_; }
  bool is_stale(int64_t row) const;
  void prefetch(const kernels::StaleRow& row) const;
  void catch_up_rows(std::span<const int64_t> ids);
  void make_steps(Rows rows) const;
  template <class T>
  void make_steps_of(Rows rows) const;
  // Applies steps [from, to) to one row.
  void make_steps(int64_t row, int64_t from, int64_t to) const;
  template <class T>
  void make_steps_of(int64_t row, const Run& run) const;

  const std::shared_ptr<kernels::StepHistory> steps_;
  const Variable::Weak table_;
  const int64_t rows_, dim_;
  const DType dtype_;
  // For each row the number of steps applied to it, or kBusy.
  Tensor row_steps_tensor_;
  int32_t* const row_steps_;
  std::atomic<int32_t> min_row_steps_;        // lower bound of the step count of every row
  std::array<std::mutex, kStripes> stripes_;  // guard rows that catch up
  int32_t table_steps_ = 0;                   // the step count of a row that is up to date
  std::vector<Run> runs_;
  // The memory of the values while rows are deferred. The table and each of its slots keep it
  // alive.
  VariableMemory memory_;
};

// A table that a step updates by rows, with its slots.
struct SteppedTable {
  Variable table;
  std::vector<Variable> slots;
  bool decays = false;
};

// The lazy tables of one optimizer. Thread safe except for pack() and end_step().
class LazyTables {
 public:
  // Throws ValueError in the cases of the constructor of StepHistory.
  LazyTables(const std::string& caller, std::shared_ptr<const UpdateRule> rule, bool closed_form);

  // Calls LazyTable::pack() for each table before a step by rows. If the step then fails, it is not
  // recorded; the rows that it had already updated count it in place of the next recorded step.
  void pack(const std::vector<SteppedTable>& tables);
  // Records the step in the history. A weight w of a table that decays loses decay * w in the step.
  void end_step(const Step& step, double decay, const std::vector<SteppedTable>& tables);
  // Returns true if the deferred rows of the table belong to this object.
  bool owns_deferred_rows(const Variable& table) const;
  // Returns the LazyTable of a table that was packed.
  LazyTable* find(const Variable& table) const;

 private:
  void drop_expired_tables();

  const std::shared_ptr<kernels::StepHistory> steps_;
  std::map<uint64_t, std::shared_ptr<LazyTable>> tables_;  // by Variable::id
};

}  // namespace keel
