// Scales the losses of activity regularizers in a training step that runs on several replicas.
#pragma once

namespace keel {

// RAII scope that multiplies the activity losses of this thread by `scale`. An activity
// regularizer's loss is divided by the number of rows that its layer receives, and a training step
// averages the losses of the replicas. A strategy therefore sets `scale` to the replica's share of
// the rows times the number of replicas: each row of the batch then has the same weight, however
// the rows are split.
class ActivityLossScale {
 public:
  explicit ActivityLossScale(double scale);
  ~ActivityLossScale();
  ActivityLossScale(const ActivityLossScale&) = delete;
  ActivityLossScale& operator=(const ActivityLossScale&) = delete;
  // Returns the scale of the innermost scope of this thread, or 1 outside of any scope.
  static double current();

 private:
  const double previous_;
};

}  // namespace keel
