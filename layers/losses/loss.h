// Loss: what training makes small (keras.losses).
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>

#include <keel/framework/base/handle.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/tensor.h>

namespace keel {

// How per-sample losses become one number: "sum_over_batch_size" (the default; "mean" is the same)
// divides their sum by how many they are, "mean_with_sample_weight" by the sum of the weights;
// "sum" adds them and "none" leaves them. Losses know it by name, as Keras's configs do.
enum class Reduction { kSumOverBatchSize, kSum, kMeanWithSampleWeight, kNone };
Reduction reduction_from_name(const std::string& name, const std::string& caller);  // ValueError

// Immutable; may be called by several replicas at once. Derive, write per_sample() and
// get_config(), and hold it by a Handle.
class Loss {
 public:
  virtual ~Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  // Loss of each sample, differentiable: [batch, ...], y_pred's shape without its class axis; or
  // one number of the whole batch. Gets what fit_labels() returned. The result's mask, if any,
  // tells which losses count.
  virtual Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const = 0;
  // Keras's config, from which the registry makes an equal loss.
  virtual Config get_config() const = 0;

  // Sums numbers over the replicas of a step, for losses that are divided by totals of all.
  using SumOverReplicas = std::function<Tensor(const Tensor&)>;

  // per_sample() of labels as the user has them, times sample_weight if there is one, which has
  // the leading dimensions of the result, and 1 in those that follow, or is one number. Losses
  // that y_pred's mask leaves out become 0; reductions that are means weigh the others up by
  // all / valid, counted in this batch or over the replicas. ValueError for shapes that do not fit.
  Tensor weighted(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {},
                  const SumOverReplicas& sum_over_replicas = {}) const;
  // The same reduced: a scalar, unless the reduction is "none".
  Tensor call(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) const;

  // What the sum of all replicas' losses is divided by, for losses of this shape from `rows` rows
  // in all, with weights of this mean; 1 where that would be 0. Where losses are not of single rows
  // it is the mean over the replicas.
  double divisor(const Shape& losses, int64_t rows, double mean_weight) const;

  const std::string& class_name() const { return class_name_; }
  const std::string& name() const { return name_; }
  Reduction reduction() const { return reduction_; }

 protected:
  // `options` holds name and reduction.
  template <class Options>
  Loss(const char* class_name, const Options& options)
      : Loss(std::string(class_name), options.name, options.reduction) {}
  Loss(std::string class_name, std::string name, const std::string& reduction);

  // True if y_true of this batch holds class numbers, which are left as they are.
  virtual bool sparse_labels(const Tensor&, const Tensor&) const { return false; }
  // True if per_sample() leaves out itself what y_pred's mask leaves out.
  virtual bool uses_mask() const { return false; }
  // True if losses of this rank are not of single rows: `axis` was the batch.
  virtual bool mixes_rows(int) const { return false; }
  // For losses reduced over one axis: true if it was the first of rank + 1.
  static bool is_batch_axis(int axis, int rank) { return axis == 0 || axis == -(rank + 1); }

 private:
  struct Parts {
    Tensor losses, weight;  // the weight broadcasts against the losses, or is empty
  };
  Parts parts(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight,
              const SumOverReplicas& sum_over_replicas) const;

  const std::string class_name_, name_;
  const Reduction reduction_;
};

using LossHandle = Handle<Loss>;

// The name and reduction that every loss's options list first.
void loss_fields(auto& self, auto&& field) {
  field("name", self.name);
  field("reduction", self.reduction);
}

Registry<Loss>& loss_registry();

namespace losses {

// By name with default options: "binary_crossentropy", "BinaryCrossentropy", "mse", ... and
// "crossentropy" (or "ce"), which chooses by the shapes. ValueError if unknown.
LossHandle get(const std::string& name);
// {"class_name": ..., "config": ...}
Config serialize(const Loss& loss);
// From such a dict, from Keras's forms of functions, or from a name. ValueError for an unknown
// class or key.
LossHandle deserialize(const Config& config);

}  // namespace losses

// What compile() takes: nothing, a name or a loss.
class LossArgument {
 public:
  LossArgument() = default;
  LossArgument(const char* name) : LossArgument(std::string(name)) {}  // NOLINT: implicit
  LossArgument(const std::string& name)                                // NOLINT: implicit
      : loss_(losses::get(name).shared()), name_(name) {}
  template <std::derived_from<Loss> T>
  LossArgument(const Handle<T>& loss) : loss_(loss.shared()) {}  // NOLINT: implicit

  explicit operator bool() const { return loss_ != nullptr; }
  const std::shared_ptr<Loss>& shared() const { return loss_; }
  // As it was given: a name, or losses::serialize().
  Config config() const;

 private:
  std::shared_ptr<Loss> loss_;
  std::string name_;
};

// The pair made to fit: a y_pred [batch] counts as [batch, 1]; where one has a last dimension 1
// that the other lacks, it is added or dropped; y_true takes y_pred's dtype. ValueError, naming
// `caller`, if the shapes differ then; TypeError unless y_pred is floating.
std::pair<Tensor, Tensor> fit_labels(const std::string& caller, const Tensor& y_true,
                                     const Tensor& y_pred);

// What Keras takes the word "accuracy" or "crossentropy" for, by the shapes of labels and
// predictions.
enum class LabelKind { kBinary, kSparseCategorical, kCategorical };
LabelKind label_kind(const Tensor& y_true, const Tensor& y_pred);

}  // namespace keel
