// LazyTable: a table and its slots, rows of which wait for the steps that they missed.
//
// A step by IndexedSlices touches the rows that they name. The others are behind from then on, and
// are brought up to date when they are stepped next or when somebody looks: the table and its slots
// ask for it (Variable::set_waiting_rows) and keep this alive. A row of zeros' state costs nothing
// but its number.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/framework/kernels/scratch.h>
#include <keel/framework/kernels/update_rules/step_history.h>
#include <keel/optimizers/step/variable_memory.h>

namespace keel {

class LazyTable final : public DeferredRows, public std::enable_shared_from_this<LazyTable> {
 public:
  // Rows know all of `steps` so far.
  LazyTable(std::shared_ptr<kernels::StepHistory> steps, const Variable& table);

  // Before a step, when nobody looks and no rows wait for others: packs what is not packed.
  void pack(const std::vector<Variable>& slots);
  const VariableMemory& memory() const { return memory_; }
  // Before they are stepped: gives rows what they missed before this step. Different rows may be
  // stepped at once.
  void step_rows(std::span<const int64_t> rows);
  // The last of the steps is one of this table by rows; all rows that it did not step wait.
  void end_step(bool decays);
  bool has_waiting_rows() const { return all_had_ != due_; }
  bool has_table() const { return static_cast<bool>(table_.lock()); }
  // Of a table that is gone: brings up the slots that it has left, in whose memory it was. Without
  // slots there is no memory any more.
  void bring_up_slots();

  void materialize(std::span<const int64_t> ids) override;
  void bring_up_all() override;

 private:
  static constexpr int64_t kRowsOfStripe = 256;  // that follow each other
  static constexpr size_t kStripes = 16;
  // Of any id: those that are no rows have some stripe too.
  static size_t stripe_of(int64_t id) {
    return static_cast<uint64_t>(id) / kRowsOfStripe % kStripes;
  }
  struct ByStripe {
    kernels::ScratchVector<int64_t> ids;
    std::array<size_t, kStripes + 1> starts = {};
  };
  static ByStripe by_stripe(std::span<const int64_t> ids);

  using Rows = std::span<const kernels::RowBehind>;
  // Steps of this table, all by rows.
  struct Run {
    int64_t begin = 0, end = 0;
    bool decays = false;
  };

  bool is_row(int64_t id) const { return id >= 0 && id < rows_; }
  bool is_behind(int64_t row) const;
  void ask_for(const kernels::RowBehind& row) const;
  void catch_up_rows(std::span<const int64_t> ids);
  void make_steps(Rows rows) const;
  template <class T>
  void make_steps_of(Rows rows) const;
  void make_steps(int64_t row, int64_t from, int64_t to) const;
  template <class T>
  void make_steps_of(int64_t row, const Run& run) const;

  const std::shared_ptr<kernels::StepHistory> steps_;
  const Variable::Weak table_;
  const int64_t rows_, dim_;
  const DType dtype_;
  // By row: the steps that it has had, or kBusy.
  Tensor steps_had_;
  int32_t* const had_;
  std::atomic<int32_t> all_had_;              // but no row fewer than this
  std::array<std::mutex, kStripes> stripes_;  // of rows that are brought up
  int32_t due_ = 0;                           // that rows should have had
  std::vector<Run> runs_;
  // Of the values while rows wait. The table keeps it and, if there are slots, each of them.
  VariableMemory memory_;
};

struct SteppedTable {
  Variable table;
  std::vector<Variable> slots;
  bool decays = false;
};

// The tables of one optimizer. Thread safe but for pack and end_step.
class LazyTables {
 public:
  // ValueError as of StepHistory.
  LazyTables(const std::string& caller, std::shared_ptr<const UpdateRule> rule, bool closed_form);

  // Before a step by rows of these tables: LazyTable::pack of each. A step that fails after
  // that has not been one; rows that it did step take it for the next one.
  void pack(const std::vector<SteppedTable>& tables);
  // After it; some of the tables decay by so much times the value.
  void end_step(const Step& step, double decay, const std::vector<SteppedTable>& tables);
  // Whether it is these that the rows of a table ask, if anybody.
  bool are_waited_for(const Variable& table) const;
  // Of a table of the step.
  LazyTable* find(const Variable& table) const;

 private:
  void drop_tables_that_are_gone();

  const std::shared_ptr<kernels::StepHistory> steps_;
  std::map<uint64_t, std::shared_ptr<LazyTable>> tables_;  // by Variable::id
};

}  // namespace keel
