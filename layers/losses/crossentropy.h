// Cross entropies of labels y and predicted probabilities p.
//
// Predictions are probabilities, or logits if from_logits is true: values before the sigmoid
// (binary losses) or the softmax (categorical losses). Probabilities are clipped to [1e-7, 1 -
// 1e-7]. Label smoothing s, which must be in [0, 1], turns y into y (1 - s) + s / n for n classes;
// binary losses have two classes.
//
// Each function of the namespace losses returns the loss of each sample, without a reduction. It
// applies fit_labels() (loss.h) and throws its errors, unless labels are class numbers.
#pragma once

#include <optional>

#include <keel/layers/losses/formula_loss.h>

namespace keel {
namespace internal {
// Throws ValueError, naming `caller`, unless label_smoothing is in [0, 1].
void check_label_smoothing(const char* caller, double label_smoothing);
}  // namespace internal

namespace losses {

// Returns the mean over `axis` of -(y log p + (1 - y) log(1 - p)).
Tensor binary_crossentropy(const Tensor& y_true, const Tensor& y_pred, bool from_logits = false,
                           double label_smoothing = 0, int axis = -1);
// Returns minus the sum over the classes, at `axis`, of y log p. Probabilities are first scaled to
// sum to 1.
Tensor categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                bool from_logits = false, double label_smoothing = 0,
                                int axis = -1);
// Returns -log p[label] for labels that are class numbers, [...] or [..., 1], and predictions
// [..., classes] with the classes at `axis`. The loss of a sample whose label is `ignore_class` is
// 0, and the mask of the result excludes it. Throws ValueError with the position of a label that is
// not a class number.
Tensor sparse_categorical_crossentropy(const Tensor& y_true, const Tensor& y_pred,
                                       bool from_logits = false,
                                       std::optional<int64_t> ignore_class = {}, int axis = -1);
// Returns binary_crossentropy() if predictions have one column, sparse_categorical_crossentropy()
// if labels have one column or one dimension less than predictions, else
// categorical_crossentropy().
Tensor auto_crossentropy(const Tensor& y_true, const Tensor& y_pred);
// Returns (1 - p[label]^q) / q, which is more robust to wrong labels (Zhang and Sabuncu 2018). The
// shapes are those of sparse_categorical_crossentropy(), with the classes last. Predictions are
// neither clipped nor scaled.
Tensor categorical_generalized_cross_entropy(const Tensor& y_true, const Tensor& y_pred, double q);

}  // namespace losses

// The options of losses::BinaryCrossentropy and losses::CategoricalCrossentropy, which `kFunction`
// computes.
template <auto kFunction>
struct CrossentropyLossOptions {
  bool from_logits = false;    // true if y_pred holds logits
  double label_smoothing = 0;  // in [0, 1]
  int axis = -1;               // axis of the mean or of the classes
  std::string reduction = "sum_over_batch_size";
  std::string name = {};  // empty: the class name in snake case

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
  void check(const char* caller) const { internal::check_label_smoothing(caller, label_smoothing); }
  bool mixes_rows(int rank) const { return is_batch_axis(axis, rank); }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return kFunction(y_true, y_pred, from_logits, label_smoothing, axis);
  }
};
using BinaryCrossentropyLoss =
    FormulaLoss<"BinaryCrossentropy", CrossentropyLossOptions<losses::binary_crossentropy>>;
using CategoricalCrossentropyLoss =
    FormulaLoss<"CategoricalCrossentropy",
                CrossentropyLossOptions<losses::categorical_crossentropy>>;

// The options of losses::SparseCategoricalCrossentropy.
struct SparseCategoricalCrossentropyLossOptions {
  bool from_logits = false;                  // true if y_pred holds logits
  std::optional<int64_t> ignore_class = {};  // samples with this label are ignored
  int axis = -1;                             // axis of the classes in y_pred
  std::string reduction = "sum_over_batch_size";
  std::string name = "sparse_categorical_crossentropy";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("from_logits", self.from_logits);
    field("ignore_class", self.ignore_class);
    field("axis", self.axis);
  }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::sparse_categorical_crossentropy(y_true, y_pred, from_logits, ignore_class, axis);
  }
};
using SparseCategoricalCrossentropyLoss =
    FormulaLoss<"SparseCategoricalCrossentropy", SparseCategoricalCrossentropyLossOptions>;

// The options of losses::CategoricalGeneralizedCrossEntropy.
struct CategoricalGeneralizedCrossEntropyLossOptions {
  // Must be in (0, 1). Near 0 the loss acts like the cross entropy, near 1 like the absolute error.
  double q = 0.5;
  std::string reduction = "sum_over_batch_size";
  std::string name = "categorical_generalized_cross_entropy";

  static constexpr void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("q", self.q);
  }
  void check(const char* caller) const;
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::categorical_generalized_cross_entropy(y_true, y_pred, q);
  }
};
using CategoricalGeneralizedCrossEntropyLoss =
    FormulaLoss<"CategoricalGeneralizedCrossEntropy",
                CategoricalGeneralizedCrossEntropyLossOptions>;

// The options of the loss that "crossentropy" selects in compile(): losses::auto_crossentropy().
struct AutoCrossentropyLossOptions {
  std::string reduction = "sum_over_batch_size";
  std::string name = "crossentropy";

  static constexpr void fields(auto& self, auto&& field) { loss_fields(self, field); }
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const {
    return label_kind(y_true, y_pred) == LabelKind::kSparseCategorical;
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::auto_crossentropy(y_true, y_pred);
  }
};
using AutoCrossentropyLoss = FormulaLoss<"AutoCrossentropy", AutoCrossentropyLossOptions>;

namespace losses {
// Handles to the losses, under Keras's names.
using BinaryCrossentropy = Handle<BinaryCrossentropyLoss>;
using CategoricalCrossentropy = Handle<CategoricalCrossentropyLoss>;
using SparseCategoricalCrossentropy = Handle<SparseCategoricalCrossentropyLoss>;
using CategoricalGeneralizedCrossEntropy = Handle<CategoricalGeneralizedCrossEntropyLoss>;
}  // namespace losses

}  // namespace keel
