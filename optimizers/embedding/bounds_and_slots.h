// Types of the options of embedding optimizers: ClipValue, the bounds of a row's gradient, and the
// functions with which users create slot variables themselves.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <keel/framework/base/shared_function.h>
#include <keel/framework/config/config.h>
#include <keel/framework/initializers.h>
#include <keel/framework/tensor.h>

namespace keel {

// Holds no bounds, a number c that stands for the bounds (-c, c), or a pair of bounds either of
// which may be absent:
//   .clipvalue = 0.5        .clipvalue = {std::nullopt, 0.5}
// Construction throws ValueError for a negative number, and for a pair whose first bound exceeds
// the second.
class ClipValue {
 public:
  ClipValue() = default;
  // The bounds (-value, value).
  ClipValue(double value);  // NOLINT: implicit
  // A pair of bounds.
  ClipValue(std::optional<double> min, std::optional<double> max);

  // Returns true if a number or a pair was given, whatever its values; 0 is a valid bound.
  bool is_set() const { return set_; }
  // Returns the lower bound, or an empty value.
  const std::optional<double>& min() const { return min_; }
  // Returns the upper bound, or an empty value.
  const std::optional<double>& max() const { return max_; }

  // Compares the bounds.
  friend bool operator==(const ClipValue& a, const ClipValue& b) {
    return a.min_ == b.min_ && a.max_ == b.max_;
  }

 private:
  bool set_ = false;
  std::optional<double> min_, max_;
};

// Encodes missing bounds as null, and bounds as a list of two elements, each a number or null.
Config encode(const ClipValue& value);
// Decodes what encode() returns, or a single number. Throws ValueError for a list of another
// length.
void decode(const Config& config, ClipValue& value);

struct Slot;
struct TableOptimizerState;

// Returns the shape of a slot of a table of this shape, [vocabulary_size, dim]: the same, or
// [vocabulary_size, 1] for a slot with Slot::per_row.
Shape slot_shape(const Slot& slot, const Shape& table);

// Describes the table whose slots are created.
struct TableVariable {
  std::string name;               // name of the table
  Shape shape;                    // [vocabulary_size, dim]
  DType dtype = DType::kFloat32;  // dtype of the rows
};

// Maps the name of each slot to its initial value. An initializer can compute any shard of it. A
// tensor has the whole slot's shape and cannot be sharded, so engines under an accelerator
// strategy reject it.
using SlotVariables = std::map<std::string, std::variant<Initializer, Tensor>>;

// Called once for each table when the table is built, with the names of the slots and their default
// initializers. Replaces all of them; the function must return exactly these names.
using SlotVariableCreationFn = SharedFunction<SlotVariables(
    const TableVariable& table, const std::vector<std::string>& slot_names,
    const std::vector<Initializer>& initializers)>;

// Returns the initial values of the slots of `table`: the result of the optimizer's
// slot_variable_creation_fn if it is set, otherwise the optimizer's initializers. Call it once for
// each table, when the table is built. Throws ValueError if the function returns names other than
// those of the slots, or a tensor without the slot's shape and the table's dtype, and if the
// optimizer does not support the width of the table.
SlotVariables create_slots(const TableOptimizerState& optimizer, const TableVariable& table);

}  // namespace keel
