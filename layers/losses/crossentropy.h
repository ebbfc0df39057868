// Cross-entropy losses. Probabilities are clipped to [1e-7, 1 - 1e-7], except in
// CategoricalGeneralizedCrossEntropy.
#pragma once

#include <optional>

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of BinaryCrossentropyLoss.
struct BinaryCrossentropyLossOptions {
  bool from_logits = false;    // true if y_pred holds values before the sigmoid
  double label_smoothing = 0;  // in [0, 1]: labels become y (1 - s) + s / 2
  int axis = -1;               // axis of the mean
  std::string reduction = "sum_over_batch_size";
  std::string name = "binary_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
};

// Binary cross entropy: the mean over `axis` of -(y log p + (1 - y) log(1 - p)). Labels and
// predictions have the same shape.
class BinaryCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "BinaryCrossentropy";
  using Options = BinaryCrossentropyLossOptions;
  // Throws ValueError if label_smoothing is outside of [0, 1].
  explicit BinaryCrossentropyLoss(Options options);
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

// The options of CategoricalCrossentropyLoss.
struct CategoricalCrossentropyLossOptions {
  bool from_logits = false;    // true if y_pred holds values before the softmax
  double label_smoothing = 0;  // in [0, 1]: labels become y (1 - s) + s / classes
  int axis = -1;               // axis of the classes
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
};

// Categorical cross entropy: minus the sum over the classes of y log p, where p is first scaled to
// sum to 1. Labels and predictions have the same shape.
class CategoricalCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CategoricalCrossentropy";
  using Options = CategoricalCrossentropyLossOptions;
  // Throws ValueError if label_smoothing is outside of [0, 1].
  explicit CategoricalCrossentropyLoss(Options options);
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

// The options of SparseCategoricalCrossentropyLoss.
struct SparseCategoricalCrossentropyLossOptions {
  bool from_logits = false;                  // true if y_pred holds values before the softmax
  std::optional<int64_t> ignore_class = {};  // samples with this label are ignored
  int axis = -1;                             // axis of the classes in y_pred
  std::string reduction = "sum_over_batch_size";
  std::string name = "sparse_categorical_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("ignore_class", self.ignore_class);
    field("axis", self.axis);
  }
};

// Sparse categorical cross entropy: -log p[label]. Labels are class numbers [...] or [..., 1] for
// predictions [..., classes], with the classes at `axis`. The loss of an ignored sample is 0, and
// the mask of the result excludes it. Throws ValueError with the position of a label that is not a
// class number.
class SparseCategoricalCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "SparseCategoricalCrossentropy";
  using Options = SparseCategoricalCrossentropyLossOptions;
  explicit SparseCategoricalCrossentropyLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  const Options options_;
};

// The options of CategoricalGeneralizedCrossEntropyLoss.
struct CategoricalGeneralizedCrossEntropyLossOptions {
  // Must be in (0, 1). Near 0 the loss acts like the cross entropy, near 1 like the absolute error.
  double q = 0.5;
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_generalized_cross_entropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("q", self.q);
  }
};

// Generalized cross entropy: (1 - p[label]^q) / q, which is more robust to wrong labels (Zhang and
// Sabuncu 2018). Labels and predictions have the shapes of SparseCategoricalCrossentropy, with the
// classes last. Predictions are not scaled.
class CategoricalGeneralizedCrossEntropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CategoricalGeneralizedCrossEntropy";
  using Options = CategoricalGeneralizedCrossEntropyLossOptions;
  // Throws ValueError unless q is in (0, 1).
  explicit CategoricalGeneralizedCrossEntropyLoss(Options options);
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  const Options options_;
};

// The options of AutoCrossentropyLoss.
struct AutoCrossentropyLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "crossentropy";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// The loss that "crossentropy" selects in compile(): binary if predictions have one column; sparse
// categorical if labels have one column or one dimension less than predictions; else categorical.
class AutoCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "AutoCrossentropy";
  using Options = AutoCrossentropyLossOptions;
  explicit AutoCrossentropyLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const override {
    return label_kind(y_true, y_pred) == LabelKind::kSparseCategorical;
  }
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using BinaryCrossentropy = Handle<BinaryCrossentropyLoss>;
using CategoricalCrossentropy = Handle<CategoricalCrossentropyLoss>;
using SparseCategoricalCrossentropy = Handle<SparseCategoricalCrossentropyLoss>;
using CategoricalGeneralizedCrossEntropy = Handle<CategoricalGeneralizedCrossEntropyLoss>;

// Return the loss of each sample. Labels and predictions must satisfy fit_labels() or, for the last
// two functions, have the shapes of the loss class.
Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits = false,
                           double label_smoothing = 0, int axis = -1);
Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                bool from_logits = false, double label_smoothing = 0,
                                int axis = -1);
Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                       bool from_logits = false,
                                       std::optional<int64_t> ignore_class = {}, int axis = -1);
Tensor categorical_generalized_cross_entropy(const Tensor& y_true, const Tensor& y_pred, double q);

}  // namespace losses
}  // namespace keel
