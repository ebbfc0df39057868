// ThresholdHistogram: confusion counts at many thresholds, computed in one pass over the
// predictions.
#pragma once

#include <span>
#include <vector>

#include <keel/framework/tensor.h>

namespace keel {

// Confusion counts by threshold, summed by weight: labeled and predicted positive (tp), only
// predicted positive (fp), only labeled positive (fn), and neither (tn). A prediction is positive
// above the threshold.
struct ConfusionCounts {
  std::vector<double> tp, fp, tn, fn;
};

// A histogram of predictions by the number of thresholds below them. Adding a prediction takes O(1)
// time if the thresholds are 0, 1 / (n - 1), ..., 1, and O(log n) otherwise.
class ThresholdHistogram {
 public:
  explicit ThresholdHistogram(std::vector<double> thresholds);  // in any order
  // Returns a histogram with thresholds 0, 1 / (n - 1), ..., 1, where the ends are moved outward by
  // 1e-7 so that all of [0, 1] lies between them.
  static ThresholdHistogram around_unit_interval(int64_t n);
  // Returns a histogram with the given thresholds between the same two ends.
  static ThresholdHistogram around_unit_interval(const std::vector<double>& inner);

  int64_t thresholds() const { return static_cast<int64_t>(sorted_.size()); }
  int64_t state_size() const { return 2 * (thresholds() + 1); }
  // Adds a prediction to `state`, which has state_size() sums.
  void add(std::span<double> state, float prediction, bool positive, double weight) const;
  // Returns the confusion counts, with the thresholds in the order that was given to the
  // constructor.
  ConfusionCounts counts(std::span<const double> state) const;

 private:
  int64_t thresholds_below(float prediction) const;

  std::vector<float> sorted_;
  std::vector<int64_t> position_;  // original index of sorted_[i]
  bool even_ = false;
  bool ends_outside_ = false;
};

// Returns numerator / denominator, or 0 if the denominator is 0.
inline double ratio(double numerator, double denominator) {
  return denominator == 0 ? 0 : numerator / denominator;
}

}  // namespace keel
