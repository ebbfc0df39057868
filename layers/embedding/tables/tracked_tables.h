// TrackedTables: embedding tables as checkpoints see them (savedmodel/checkpoint/checkpoint.h),
// whoever holds them.
#pragma once

#include <vector>

#include <keel/layers/layer.h>

namespace keel {

class TrackedTables {
 public:
  virtual ~TrackedTables() = default;
  virtual bool built() const = 0;
  // "<table>" and, per slot, "<table>/<slot>", in table order: the same whether tables are host
  // variables or in an engine. Before the tables are made, `get` is a RuntimeError, and `set` keeps
  // the value: the table starts from it then, and its initializer is not run.
  virtual std::vector<StateEntry> state_entries() = 0;
  // Tables that a Keras optimizer may train and keep slots for. None before they are made.
  virtual std::vector<Variable> trainable_variables() const { return {}; }
};

}  // namespace keel
