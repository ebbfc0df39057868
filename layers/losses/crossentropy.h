// Cross entropies. Probabilities are clipped to [1e-7, 1 - 1e-7].
#pragma once

#include <optional>

#include <keel/layers/losses/loss.h>

namespace keel {

struct BinaryCrossentropyLossOptions {
  bool from_logits = false;    // y_pred is before the sigmoid
  double label_smoothing = 0;  // in [0, 1]: labels become y (1 - s) + s / 2
  int axis = -1;               // the mean is over this axis
  std::string reduction = "sum_over_batch_size";
  std::string name = "binary_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
};

// mean over `axis` of -(y log p + (1 - y) log(1 - p)). Labels and predictions have one shape.
class BinaryCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "BinaryCrossentropy";
  using Options = BinaryCrossentropyLossOptions;
  explicit BinaryCrossentropyLoss(Options options);  // ValueError for a smoothing out of range
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

struct CategoricalCrossentropyLossOptions {
  bool from_logits = false;    // y_pred is before the softmax
  double label_smoothing = 0;  // in [0, 1]: labels become y (1 - s) + s / classes
  int axis = -1;               // of the classes
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
};

// -sum over classes of y log p, p scaled to sum to 1 first. Labels and predictions have one shape.
class CategoricalCrossentropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CategoricalCrossentropy";
  using Options = CategoricalCrossentropyLossOptions;
  explicit CategoricalCrossentropyLoss(Options options);  // ValueError as above
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

struct SparseCategoricalCrossentropyLossOptions {
  bool from_logits = false;                  // y_pred is before the softmax
  std::optional<int64_t> ignore_class = {};  // samples of this label do not count
  int axis = -1;                             // of the classes in y_pred
  std::string reduction = "sum_over_batch_size";
  std::string name = "sparse_categorical_crossentropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("ignore_class", self.ignore_class);
    field("axis", self.axis);
  }
};

// -log p[label]: labels are class numbers [...] or [..., 1] for predictions [..., classes], with
// the classes at `axis`. ValueError for a label that is no class, with its position. The result's
// mask leaves ignored samples out, whose loss is 0.
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

struct CategoricalGeneralizedCrossEntropyLossOptions {
  double q = 0.5;  // in (0, 1): towards 0 like the cross entropy, towards 1 like the absolute error
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_generalized_cross_entropy";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("q", self.q);
  }
};

// (1 - p[label]^q) / q, which minds wrong labels less (Zhang and Sabuncu 2018). Labels and
// predictions as of SparseCategoricalCrossentropy, classes last; predictions are not scaled.
class CategoricalGeneralizedCrossEntropyLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CategoricalGeneralizedCrossEntropy";
  using Options = CategoricalGeneralizedCrossEntropyLossOptions;
  explicit CategoricalGeneralizedCrossEntropyLoss(Options options);  // ValueError: q out of range
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  const Options options_;
};

struct AutoCrossentropyLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "crossentropy";
  static void fields(auto& self, auto&& field) { loss_fields(self, field); }
};

// What "crossentropy" means in compile(): binary if predictions have one column; sparse categorical
// if labels have one column or a dimension less; else categorical.
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

using BinaryCrossentropy = Handle<BinaryCrossentropyLoss>;
using CategoricalCrossentropy = Handle<CategoricalCrossentropyLoss>;
using SparseCategoricalCrossentropy = Handle<SparseCategoricalCrossentropyLoss>;
using CategoricalGeneralizedCrossEntropy = Handle<CategoricalGeneralizedCrossEntropyLoss>;

// Per sample, of labels that fit as fit_labels() says.
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
