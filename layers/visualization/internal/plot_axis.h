// Axes of plots: a range of numbers, round ticks in it, and where they lie.
#pragma once

#include <string>
#include <vector>

namespace keel {

struct AxisTick {
  double value = 0;
  std::string label = {};
};

class PlotAxis {
 public:
  enum class Scale { kLinear, kLog, kInteger };

  // Covers [low, high] and a little more; `ticks` is about how many there are. On a log scale both
  // are positive. On an integer scale ticks are whole numbers and the ends are low and high.
  PlotAxis(Scale scale, double low, double high, int ticks);

  const std::vector<AxisTick>& ticks() const { return ticks_; }
  double position(double value) const;  // from 0 at the low end to 1

 private:
  void add_linear_ticks(int wanted);
  void add_log_ticks(int wanted);

  const Scale scale_;
  double low_, high_;
  std::vector<AxisTick> ticks_;
};

}  // namespace keel
