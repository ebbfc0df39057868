// QuantileSummary: approximate quantiles of a stream of numbers, as in Keras's Discretization.
#pragma once

#include <vector>

namespace keel {

// Keeps about 1 / epsilon values, each with a weight: the number of values that it represents.
// Results depend on how the numbers are divided among calls of add(), but not on their order in a
// call.
class QuantileSummary {
 public:
  explicit QuantileSummary(double epsilon) : epsilon_(epsilon) {}  // in (0, 1]

  void add(std::vector<float> values);  // values must not contain NaN
  bool empty() const { return points_.empty(); }
  // Returns bins - 1 values that divide the numbers into bins of equal weight; fewer if there are
  // fewer than `bins` values.
  std::vector<double> boundaries(double bins) const;

 private:
  struct Point {
    float value, weight;
  };
  using Points = std::vector<Point>;
  // Returns points at the quantiles epsilon, 2 epsilon, ..., interpolated. Returns `points`
  // unchanged if there are fewer.
  static Points compressed(const Points& points, double epsilon);

  const double epsilon_;
  Points points_;
};

}  // namespace keel
