// ClipValue: bounds for each element of the gradient of a table row.
#pragma once

#include <optional>

#include <keel/framework/config/config.h>

namespace keel {

// Holds no bounds, a number c that stands for the bounds (-c, c), or a pair of bounds either of
// which may be absent:
//   .clipvalue = 0.5        .clipvalue = {std::nullopt, 0.5}
// Construction throws ValueError for a negative number, and for a pair whose first bound exceeds
// the second.
class ClipValue {
 public:
  ClipValue() = default;
  ClipValue(double value);  // NOLINT: implicit
  ClipValue(std::optional<double> min, std::optional<double> max);

  // Returns true if a number or a pair was given, whatever its values; 0 is a valid bound.
  bool is_set() const { return set_; }
  const std::optional<double>& min() const { return min_; }
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
// decode() also accepts a single number, and throws ValueError for a list of another length.
Config encode(const ClipValue& value);
void decode(const Config& config, ClipValue& value);

}  // namespace keel
