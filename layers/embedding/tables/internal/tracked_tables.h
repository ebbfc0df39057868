// TrackedTables: the interface through which checkpoints access embedding tables
// (savedmodel/checkpoint/checkpoint.h), whether variables or an engine hold them.
#pragma once

#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// Embedding tables with named state entries.
class TrackedTables {
 public:
  virtual ~TrackedTables() = default;
  // Returns true once the tables exist.
  virtual bool built() const = 0;
  // Returns the entries "<table>" and "<table>/<slot>" in table order. The names do not depend on
  // whether host variables or an engine hold the tables. Before the tables are built, `get` throws
  // RuntimeError, and `set` stores the value: the table starts from it, and its initializer is not
  // run.
  virtual std::vector<StateEntry> state_entries() = 0;
  // Returns the tables that a Keras optimizer may train and keep slots for. Empty before build().
  virtual std::vector<Variable> trainable_variables() const { return {}; }
};

}  // namespace keel
