// HostTables: embedding tables and their slots as variables on the host.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/layers/embedding/tables/table_config.h>
#include <keel/layers/embedding/tables/tracked_tables.h>

namespace keel {

// Any thread may build; the first does.
class HostTables final : public TrackedTables, public std::enable_shared_from_this<HostTables> {
 public:
  explicit HostTables(TableSet tables) : tables_(std::move(tables)) {}

  // Makes one trainable variable "<table>" of [vocabulary_size, dim] for each table, and those of
  // its optimizer's slots, "<table>/<slot>", never trainable; a table without optimizer has none.
  // What was restored before takes the place of initial values. Does nothing the second time.
  // ValueError as create_slots says (optimizers/embedding/slot_variables.h).
  void build();
  bool built() const override;
  std::vector<StateEntry> state_entries() override;
  std::vector<Variable> trainable_variables() const override;

  const TableSet& tables() const { return tables_; }
  // Once built; by table.
  const std::vector<Variable>& parameters() const { return parameters_; }
  const std::vector<std::map<std::string, Variable>>& slots() const { return slots_; }

 private:
  Variable made(const Table& table, const std::string& name, bool trainable,
                const std::variant<Initializer, Tensor>& start);
  StateEntry entry(const Table& table, size_t index, const std::string& slot);
  const Variable& variable(size_t table, const std::string& slot) const;

  const TableSet tables_;
  mutable std::mutex mutex_;  // guards all below until built_, after which nothing changes
  bool built_ = false;
  std::map<std::string, Tensor> restored_;  // by entry name, before the tables are made
  std::vector<Variable> parameters_;
  std::vector<std::map<std::string, Variable>> slots_;
};

}  // namespace keel
