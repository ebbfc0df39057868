// Losses of the directions of vectors.
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

// The options of CosineSimilarityLoss.
struct CosineSimilarityLossOptions {
  int axis = -1;  // axis of the vectors
  std::string reduction = "sum_over_batch_size";
  std::string name = "cosine_similarity";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("axis", self.axis);
  }
};

// Minus the cosine of the angle between y_true and y_pred: -1 for equal directions, 1 for opposite
// ones, and 0 if either vector is zero.
class CosineSimilarityLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "CosineSimilarity";
  using Options = CosineSimilarityLossOptions;
  explicit CosineSimilarityLoss(Options options)
      : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool mixes_rows(int rank) const override { return is_batch_axis(options_.axis, rank); }
  const Options options_;
};

// The options of CircleLoss.
struct CircleLossOptions {
  double gamma = 80;            // scale of the similarities
  double margin = 0.4;          // relaxation of the thresholds for near and far pairs
  bool remove_diagonal = true;  // exclude the pair of a sample with itself
  std::string reduction = "sum_over_batch_size";
  std::string name = "circle";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("gamma", self.gamma);
    field("margin", self.margin);
    field("remove_diagonal", self.remove_diagonal);
  }
};

// Circle loss: pulls embeddings with the same label together and pushes the others apart (Sun et
// al. 2020). y_true [batch] or [batch, 1] holds class numbers; y_pred [batch, dim] holds vectors of
// length 1. Each sample is compared with the rest of its batch. The result's mask excludes samples
// whose loss is 0, such as samples without another sample of their label. Throws
// NotImplementedError for symbolic tensors with an unknown batch size.
class CircleLoss final : public Loss {
 public:
  static constexpr char kClassName[] = "Circle";
  using Options = CircleLossOptions;
  explicit CircleLoss(Options options) : Loss(kClassName, options), options_(std::move(options)) {}
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  const Options options_;
};

namespace losses {

// Handles to the losses, under Keras's names.
using CosineSimilarity = Handle<CosineSimilarityLoss>;
using Circle = Handle<CircleLoss>;

// Returns the loss of each sample. Labels and predictions must satisfy fit_labels().
Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis = -1);
// Returns the loss of each sample. Labels and predictions have the shapes of CircleLoss.
Tensor circle(const Tensor& y_true, const Tensor& y_pred, bool remove_diagonal = true,
              double gamma = 80, double margin = 0.4);

}  // namespace losses
}  // namespace keel
