// Axes of plots: a range of values and its ticks at round numbers.
#pragma once

#include <string>
#include <vector>

namespace keel {

// A labeled position on an axis.
struct AxisTick {
  double value = 0;
  std::string label = {};
};

// Maps values to positions on an axis.
class PlotAxis {
 public:
  enum class Scale { kLinear, kLog, kInteger };

  // Covers [low, high] with a small margin; `ticks` is the approximate number of ticks. A log scale
  // requires low > 0. On an integer scale, ticks are integers and there is no margin unless low
  // equals high.
  PlotAxis(Scale scale, double low, double high, int ticks);

  const std::vector<AxisTick>& ticks() const { return ticks_; }
  double position(double value) const;  // 0 at the low end, 1 at the high end

 private:
  void add_linear_ticks(int wanted);
  void add_log_ticks(int wanted);

  const Scale scale_;
  double low_, high_;
  std::vector<AxisTick> ticks_;
};

}  // namespace keel
