// ClipValue: bounds of each element of a table row's gradient.
#pragma once

#include <optional>

#include <keel/framework/config/config.h>

namespace keel {

// Nothing, a number c for the bounds (-c, c), or a pair of bounds of which either may be absent:
//   .clipvalue = 0.5        .clipvalue = {std::nullopt, 0.5}
// ValueError for a negative number, and for a pair whose first exceeds its second.
class ClipValue {
 public:
  ClipValue() = default;
  ClipValue(double value);  // NOLINT: implicit
  ClipValue(std::optional<double> min, std::optional<double> max);

  // True if a number or a pair was given, whatever its values: 0 is a bound.
  bool is_set() const { return set_; }
  const std::optional<double>& min() const { return min_; }
  const std::optional<double>& max() const { return max_; }

  // By bounds.
  friend bool operator==(const ClipValue& a, const ClipValue& b) {
    return a.min_ == b.min_ && a.max_ == b.max_;
  }

 private:
  bool set_ = false;
  std::optional<double> min_, max_;
};

// Null without bounds, else a list of two, each a number or null; decode reads a number too.
Config encode(const ClipValue& value);
void decode(const Config& config, ClipValue& value);

}  // namespace keel
