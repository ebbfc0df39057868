// HostTables: embedding tables and their slot variables on the host.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <keel/autodiff/variable.h>
#include <keel/layers/embedding/tables/internal/keyed_variable.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/layers/embedding/tables/table_config.h>

namespace keel {

// Owns the variables of a TableSet. build() is thread-safe: the first call creates the variables.
class HostTables final : public TrackedTables, public std::enable_shared_from_this<HostTables> {
 public:
  explicit HostTables(TableSet tables) : tables_(std::move(tables)) {}

  // Creates one variable "<table>" of shape [vocabulary_size, dim] for each table, trainable if the
  // table is, and the non-trainable variables "<table>/<slot>" of its optimizer's slots. A table
  // without an optimizer, or one that is not trained, has no slots. Values that were restored
  // before replace the initial values. Later calls do nothing. Throws ValueError under the
  // conditions of create_slots (optimizers/embedding/bounds_and_slots.h).
  void build();
  bool built() const override;
  std::vector<StateEntry> state_entries() override;
  std::vector<Variable> trainable_variables() const override;

  // Returns a table with dynamic ids; null for other tables.
  const std::shared_ptr<KeyedVariable>& keyed(size_t table) const { return keyed_.at(table); }

  // Returns the tables' configs.
  const TableSet& tables() const { return tables_; }
  // Return the tables and their slots, by table. Valid after build().
  const std::vector<Variable>& parameters() const { return parameters_; }
  const std::vector<std::map<std::string, Variable>>& slots() const { return slots_; }

 private:
  Variable made(const std::string& name, const Shape& shape,
                const std::variant<Initializer, Tensor>& start, VariableOptions options);
  StateEntry entry(const Table& table, size_t index, const std::string& slot, const Shape& shape);
  const Variable& variable(size_t table, const std::string& slot) const;

  const TableSet tables_;
  mutable std::mutex
      mutex_;  // guards the members below until built_; they do not change afterwards
  bool built_ = false;
  std::map<std::string, Tensor> restored_;  // by entry name, before build()
  std::vector<Variable> parameters_;
  std::vector<std::map<std::string, Variable>> slots_;
  std::vector<std::shared_ptr<KeyedVariable>> keyed_;  // by table
};

}  // namespace keel
