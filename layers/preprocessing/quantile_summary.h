// QuantileSummary: quantiles of more numbers than it keeps, as Keras's Discretization takes them.
#pragma once

#include <vector>

namespace keel {

// Values with weights, that is, how many numbers each stands for: about 1 / epsilon of them,
// whatever was added. Results depend on how the numbers were divided into calls of add(), but not
// on their order in one.
class QuantileSummary {
 public:
  explicit QuantileSummary(double epsilon) : epsilon_(epsilon) {}  // in (0, 1]

  void add(std::vector<float> values);  // without NaN
  bool empty() const { return points_.empty(); }
  // bins - 1 values between bins that stand for equally many numbers; fewer if there are fewer
  // than `bins` values.
  std::vector<double> boundaries(double bins) const;

 private:
  struct Point {
    float value, weight;
  };
  using Points = std::vector<Point>;
  // Points at the quantiles epsilon, 2 epsilon, ..., interpolated; as they are if there are fewer.
  static Points compressed(const Points& points, double epsilon);

  const double epsilon_;
  Points points_;
};

}  // namespace keel
