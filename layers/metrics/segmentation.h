// Intersection over union of classes, for the segmentation of images and other predictions of one
// class per position.
//
// All metrics count the pairs of true and predicted classes in a matrix. For each target class the
// ratio is
//   true positives / (true positives + false positives + false negatives)
// and the result is the mean of these ratios, without the classes that occur neither in labels nor
// in predictions. It is 0 if none occurs.
//
// Labels and predictions are class numbers ("sparse"), or have an axis of scores, of which the
// greatest is the class. Sample weights have one number for each position. As in Keras, weights are
// cut to integers while `dtype` is an integer type, which is the default; pass DType::kFloat32 to
// use them as they are. Constructors throw ValueError if an option is out of range, and updates if
// a class number is not in [0, num_classes).
#pragma once

#include <optional>
#include <vector>

#include <keel/layers/metrics/class_axis.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// The options that the metrics of this header have in common, and of metrics::IoU.
struct IoUMetricOptions {
  std::string name = {};                        // empty: the class name in snake case
  DType dtype = DType::kInt32;                  // dtype of the counts
  int64_t num_classes = 2;                      // > 0; Keras has no default
  std::vector<int64_t> target_class_ids = {0};  // in [0, num_classes); Keras has no default
  std::optional<int64_t> ignore_class = {};     // positions with this label do not count
  bool sparse_y_true = true;                    // false: scores of classes along `axis`
  bool sparse_y_pred = true;                    // the same for predictions
  int axis = -1;                                // axis of the classes

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("num_classes", self.num_classes);
    field("target_class_ids", self.target_class_ids);
    field("ignore_class", self.ignore_class);
    field("sparse_y_true", self.sparse_y_true);
    field("sparse_y_pred", self.sparse_y_pred);
    field("axis", self.axis);
  }
  // Returns the options of the counts that the result is computed from.
  IoUMetricOptions counts() const { return *this; }
};

// The options of metrics::MeanIoU.
struct MeanIoUMetricOptions {
  std::string name = {};                     // empty: the class name in snake case
  DType dtype = DType::kInt32;               // dtype of the counts
  int64_t num_classes = 2;                   // > 0; Keras has no default
  std::optional<int64_t> ignore_class = {};  // positions with this label do not count
  bool sparse_y_true = true;                 // false: scores of classes along `axis`
  bool sparse_y_pred = true;                 // the same for predictions
  int axis = -1;                             // axis of the classes

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("num_classes", self.num_classes);
    field("ignore_class", self.ignore_class);
    field("sparse_y_true", self.sparse_y_true);
    field("sparse_y_pred", self.sparse_y_pred);
    field("axis", self.axis);
  }
  // Returns the same with all classes as targets.
  IoUMetricOptions counts() const;
};

// The options of metrics::OneHotIoU.
struct OneHotIoUMetricOptions {
  std::string name = {};                        // empty: the class name in snake case
  DType dtype = DType::kInt32;                  // dtype of the counts
  int64_t num_classes = 2;                      // > 0; Keras has no default
  std::vector<int64_t> target_class_ids = {0};  // in [0, num_classes); Keras has no default
  std::optional<int64_t> ignore_class = {};     // positions with this label do not count
  bool sparse_y_pred = false;                   // true: predictions are class numbers
  int axis = -1;                                // axis of the classes

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("num_classes", self.num_classes);
    field("target_class_ids", self.target_class_ids);
    field("ignore_class", self.ignore_class);
    field("sparse_y_pred", self.sparse_y_pred);
    field("axis", self.axis);
  }
  // Returns the options of the counts that the result is computed from.
  IoUMetricOptions counts() const;
};

// The options of metrics::OneHotMeanIoU.
struct OneHotMeanIoUMetricOptions {
  std::string name = {};                     // empty: the class name in snake case
  DType dtype = DType::kInt32;               // dtype of the counts
  int64_t num_classes = 2;                   // > 0; Keras has no default
  std::optional<int64_t> ignore_class = {};  // positions with this label do not count
  bool sparse_y_pred = false;                // true: predictions are class numbers
  int axis = -1;                             // axis of the classes

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("num_classes", self.num_classes);
    field("ignore_class", self.ignore_class);
    field("sparse_y_pred", self.sparse_y_pred);
    field("axis", self.axis);
  }
  // Returns the options of the counts that the result is computed from.
  IoUMetricOptions counts() const;
};

// The options of metrics::BinaryIoU.
struct BinaryIoUMetricOptions {
  std::string name = {};                           // empty: the class name in snake case
  DType dtype = DType::kInt32;                     // dtype of the counts
  std::vector<int64_t> target_class_ids = {0, 1};  // 0, 1 or both
  double threshold = 0.5;                          // predictions of at least this value are class 1

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("target_class_ids", self.target_class_ids);
    field("threshold", self.threshold);
  }
  // Returns the options of the counts that the result is computed from.
  IoUMetricOptions counts() const;
};

// Counts pairs of classes, and computes the result of all metrics of this header.
class IoUCounts : public Metric, public ClassAxis {
 public:
  Direction direction() const override { return Direction::kUp; }
  bool has_class_axis() const override { return !options_.sparse_y_pred; }
  int class_axis() const override { return options_.axis; }

 protected:
  // Constructs a metric whose class has this name. Predictions are compared with the threshold, if
  // there is one.
  IoUCounts(const char* class_name, IoUMetricOptions options, std::optional<double> threshold);

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }

  const IoUMetricOptions options_;
  const std::optional<double> threshold_;
};

// One of the metrics of this header.
template <ClassName kName, class OptionsType>
class IoUMetricOf final : public IoUCounts {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  using Options = OptionsType;                           // the options of the constructor
  // Throws ValueError if an option is out of range.
  explicit IoUMetricOf(Options options)
      : IoUCounts(kClassName, options.counts(), threshold_of(options)),
        options_(std::move(options)) {}
  Config get_config() const override {
    Options out = options_;
    out.name = name();
    return to_config(out);
  }

 private:
  static std::optional<double> threshold_of(const Options& options) {
    if constexpr (requires { options.threshold; }) {
      return options.threshold;
    } else {
      return {};
    }
  }
  const Options options_;
};
using IoUMetric = IoUMetricOf<"IoU", IoUMetricOptions>;
using MeanIoUMetric = IoUMetricOf<"MeanIoU", MeanIoUMetricOptions>;
using OneHotIoUMetric = IoUMetricOf<"OneHotIoU", OneHotIoUMetricOptions>;
using OneHotMeanIoUMetric = IoUMetricOf<"OneHotMeanIoU", OneHotMeanIoUMetricOptions>;
using BinaryIoUMetric = IoUMetricOf<"BinaryIoU", BinaryIoUMetricOptions>;

namespace metrics {
// Handles to the metrics, under Keras's names.
using IoU = Handle<IoUMetric>;
using MeanIoU = Handle<MeanIoUMetric>;
using OneHotIoU = Handle<OneHotIoUMetric>;
using OneHotMeanIoU = Handle<OneHotMeanIoUMetric>;
using BinaryIoU = Handle<BinaryIoUMetric>;
}  // namespace metrics

}  // namespace keel
