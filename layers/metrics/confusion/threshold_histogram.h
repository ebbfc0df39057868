// ThresholdHistogram: confusion counts at many thresholds, in one pass over the predictions.
#pragma once

#include <span>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel {

// By threshold: what is labelled and predicted positive (tp), predicted only (fp), labelled only
// (fn) and neither (tn), summed by weight. A prediction is positive above the threshold.
struct ConfusionCounts {
  std::vector<double> tp, fp, tn, fn;
};

// Sorts predictions by how many thresholds they are above; a prediction costs O(1) where the
// thresholds are 0, 1 / (n - 1), ..., 1 and O(log n) elsewhere.
class ThresholdHistogram {
 public:
  explicit ThresholdHistogram(std::vector<double> thresholds);  // in any order
  // 0, 1 / (n - 1), ..., 1; the ends moved out by 1e-7 so that all of [0, 1] lies between them.
  static ThresholdHistogram around_unit_interval(int64_t n);
  // The given ones between such ends.
  static ThresholdHistogram around_unit_interval(const std::vector<double>& inner);

  int64_t thresholds() const { return static_cast<int64_t>(sorted_.size()); }
  int64_t state_size() const { return 2 * (thresholds() + 1); }
  void add(std::span<double> state, float prediction, bool positive, double weight) const;
  ConfusionCounts counts(std::span<const double> state) const;  // in the order given

 private:
  int64_t thresholds_below(float prediction) const;

  std::vector<float> sorted_;
  std::vector<int64_t> position_;  // of sorted_[i] among the given ones
  bool even_ = false;
  bool ends_outside_ = false;
};

// numerator / denominator, 0 where that is 0.
inline double ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

}  // namespace keel
