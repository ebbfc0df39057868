// Losses of the directions of vectors.
#pragma once

#include <keel/layers/losses/loss.h>

namespace keel {

struct CosineSimilarityLossOptions {
  int axis = -1;  // of the vectors
  std::string reduction = "sum_over_batch_size";
  std::string name = "cosine_similarity";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("axis", self.axis);
  }
};

// Minus the cosine of the angle between y_true and y_pred: -1 for one direction, 1 for opposite
// ones; 0 if either is zero.
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

struct CircleLossOptions {
  double gamma = 80;            // scale of similarities
  double margin = 0.4;          // of what counts as near and far enough
  bool remove_diagonal = true;  // a sample is not its own neighbour
  std::string reduction = "sum_over_batch_size";
  std::string name = "circle";

  static void fields(auto& self, auto&& field) {
    loss_fields(self, field);
    field("gamma", self.gamma);
    field("margin", self.margin);
    field("remove_diagonal", self.remove_diagonal);
  }
};

// Pulls embeddings of one label together and others apart (Sun et al. 2020). y_true [batch] or
// [batch, 1] holds class numbers, y_pred [batch, dim] vectors of length 1. Losses of a sample are
// against the rest of its batch, and do not count if they are 0, as without a neighbour of its
// label. NotImplementedError for symbols of unknown batch.
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

using CosineSimilarity = Handle<CosineSimilarityLoss>;
using Circle = Handle<CircleLoss>;

// Per sample, of labels that fit as fit_labels() says.
Tensor cosine_similarity(const Tensor& y_true, const Tensor& y_pred, int axis = -1);
// Per sample; labels and predictions as CircleLoss has them.
Tensor circle(const Tensor& y_true, const Tensor& y_pred, bool remove_diagonal = true,
              double gamma = 80, double margin = 0.4);

}  // namespace losses
}  // namespace keel
