// ClassAxis: a property of metrics whose predictions hold the scores of classes along any axis.
#pragma once

namespace keel {

// A metric derives from it in addition to Metric. Sample weights then have the dimensions of the
// predictions without the class axis, instead of their leading dimensions.
class ClassAxis {
 public:
  virtual ~ClassAxis() = default;
  // Returns true if predictions have an axis of classes.
  virtual bool has_class_axis() const = 0;
  // Returns the number of that axis, which may be negative.
  virtual int class_axis() const = 0;
};

}  // namespace keel
