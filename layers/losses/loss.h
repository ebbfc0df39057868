// Loss: the function that training minimizes (keras.losses).
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>

#include <keel/framework/base/handle.h>
#include <keel/framework/config/registry.h>
#include <keel/framework/tensor.h>

namespace keel {

// Selects how per-sample losses are reduced to one number. "sum_over_batch_size" (the default;
// "mean" and "auto" are aliases) divides their sum by their number. "mean_with_sample_weight"
// divides it by the sum of the weights. "sum" adds the losses, and "none" returns them unreduced.
// Options hold the name, as Keras's configs do.
enum class Reduction {
  kSumOverBatchSize,      // "sum_over_batch_size"
  kSum,                   // "sum"
  kMeanWithSampleWeight,  // "mean_with_sample_weight"
  kNone                   // "none"
};
// Returns the reduction with this name. Throws ValueError, naming `caller`, if it is unknown.
Reduction reduction_from_name(const std::string& name, const std::string& caller);

// Base class of losses. Losses are immutable; several replicas may call one loss concurrently. To
// write your own loss, derive from this class, implement per_sample() and get_config(), and hold it
// by a Handle.
class Loss {
 public:
  virtual ~Loss() = default;
  Loss(const Loss&) = delete;
  Loss& operator=(const Loss&) = delete;

  // Returns the differentiable loss of each sample, of shape [batch, ...], which is y_pred's shape
  // without the class axis, or a scalar for the whole batch. The arguments are the results of
  // fit_labels(), unless sparse_labels() is true. The mask of the result, if any, selects the
  // losses that count.
  virtual Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const = 0;
  // Returns Keras's config, from which the registry creates an equal loss.
  virtual Config get_config() const = 0;

  // Sums a tensor over the replicas of a step, for losses that are divided by totals over all
  // replicas.
  using SumOverReplicas = std::function<Tensor(const Tensor&)>;

  // Returns per_sample() of the user's labels, multiplied by sample_weight if given. The weight is
  // a scalar, or has the leading dimensions of the losses, followed by dimensions of length 1.
  // Losses that y_pred's mask excludes become 0. For reductions that are means, the other losses
  // are multiplied by all / valid, counted in this batch, or over the replicas if
  // `sum_over_replicas` is given. Throws ValueError for shapes that do not match.
  Tensor weighted(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {},
                  const SumOverReplicas& sum_over_replicas = {}) const;
  // Returns the losses of weighted(), reduced: a scalar, unless the reduction is "none".
  Tensor call(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight = {}) const;

  // Returns the number by which the sum of all replicas' losses is divided, for losses of this
  // shape computed from `rows` rows in total, with weights of this mean. Returns 1 instead of 0. If
  // a loss does not belong to a single row, the quotient is the mean over the replicas.
  double divisor(const Shape& losses, int64_t rows, double mean_weight) const;

  // Returns the name of the class in configs and files.
  const std::string& class_name() const { return class_name_; }
  // Returns the name of this loss, which error messages contain.
  const std::string& name() const { return name_; }
  // Returns the reduction that call() applies.
  Reduction reduction() const { return reduction_; }

 protected:
  // `options` must have the fields name, where empty means the class name in snake case, and
  // reduction. Throws ValueError for an unknown reduction.
  template <class Options>
  Loss(const char* class_name, const Options& options)
      : Loss(std::string(class_name), options.name, options.reduction) {}
  // Takes the name and the reduction from `options` above.
  Loss(std::string class_name, std::string name, const std::string& reduction);

  // Returns true if y_true of this batch holds class numbers. per_sample() then receives the user's
  // labels without fit_labels().
  virtual bool sparse_labels(const Tensor&, const Tensor&) const { return false; }
  // Returns true if per_sample() itself excludes the elements that y_pred's mask excludes.
  virtual bool uses_mask() const { return false; }
  // Returns true if losses of this rank do not belong to single rows because the loss was reduced
  // over the batch axis (is_batch_axis).
  virtual bool mixes_rows(int) const { return false; }

 private:
  struct Parts {
    Tensor losses, weight;  // the weight broadcasts against the losses, or is empty
  };
  Parts parts(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight,
              const SumOverReplicas& sum_over_replicas) const;

  const std::string class_name_, name_;
  const Reduction reduction_;
};

// A shared reference to a loss of any class.
using LossHandle = Handle<Loss>;

// Lists the fields that come first in every loss's options: name and reduction.
constexpr void loss_fields(auto& self, auto&& field) {
  field("name", self.name);
  field("reduction", self.reduction);
}

// Returns the registry of the loss classes that files may name.
Registry<Loss>& loss_registry();

namespace losses {

// Returns a loss by name with default options: "binary_crossentropy", "BinaryCrossentropy", "mse",
// ... The name "crossentropy" (or "ce") selects a loss by the shapes of labels and predictions.
// Throws ValueError if the name is unknown.
LossHandle get(const std::string& name);
// Returns {"class_name": ..., "config": ...}.
Config serialize(const Loss& loss);
// Creates a loss from the output of serialize(), from Keras's forms of functions, or from a name.
// Throws ValueError for an unknown class or key.
LossHandle deserialize(const Config& config);

}  // namespace losses

// The `loss` argument of compile(): none, a name or a loss.
class LossArgument {
 public:
  // No loss.
  LossArgument() = default;
  // The loss that losses::get() returns for the name, whose errors are thrown.
  LossArgument(const char* name) : LossArgument(std::string(name)) {}  // NOLINT: implicit
  // Accepts the name as a std::string, too.
  LossArgument(const std::string& name)  // NOLINT: implicit
      : loss_(losses::get(name).shared()), name_(name) {}
  // A loss of any class.
  template <std::derived_from<Loss> T>
  LossArgument(const Handle<T>& loss) : loss_(loss.shared()) {}  // NOLINT: implicit

  // Returns true if there is a loss.
  explicit operator bool() const { return loss_ != nullptr; }
  // Returns the loss, or null if there is none.
  const std::shared_ptr<Loss>& shared() const { return loss_; }
  // Returns the argument in the form in which it was given: a name, or losses::serialize().
  Config config() const;

 private:
  std::shared_ptr<Loss> loss_;
  std::string name_;
};

// For losses reduced over one axis: returns true if `axis` was the first axis of predictions that
// have one axis more than the losses, whose rank is `rank`.
inline bool is_batch_axis(int axis, int rank) { return axis == 0 || axis == -(rank + 1); }

// Adjusts labels and predictions to each other and returns both. A y_pred of shape [batch] becomes
// [batch, 1]. A last dimension of length 1 that only one of them has is added to or dropped from
// y_true. y_true is cast to y_pred's dtype. Throws ValueError, naming `caller`, if the shapes still
// differ, and TypeError unless y_pred is floating point.
std::pair<Tensor, Tensor> fit_labels(const std::string& caller, const Tensor& y_true,
                                     const Tensor& y_pred);

// The meaning of Keras's names "accuracy" and "crossentropy", determined by the shapes of labels
// and predictions.
enum class LabelKind {
  kBinary,             // predictions have one column
  kSparseCategorical,  // labels are class numbers: one column or one dimension less than
                       // predictions
  kCategorical         // labels have one column per class
};
// Returns the kind of labels for tensors of these shapes.
LabelKind label_kind(const Tensor& y_true, const Tensor& y_pred);

}  // namespace keel
