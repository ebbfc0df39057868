// How much the losses of activity regularizers count in a step of several replicas.
#pragma once

namespace keel {

// An activity regularizer's loss is divided by the rows that its layer has seen, and a step takes
// the mean over the replicas. While alive, this thread's losses are multiplied by `scale`: a
// replica's share of the rows times the number of replicas, so that each row of the batch counts
// alike however the rows are split.
class ActivityLossScale {
 public:
  explicit ActivityLossScale(double scale);
  ~ActivityLossScale();
  ActivityLossScale(const ActivityLossScale&) = delete;
  ActivityLossScale& operator=(const ActivityLossScale&) = delete;
  static double current();  // 1 outside of any

 private:
  const double previous_;
};

}  // namespace keel
