#include <keel/layers/losses/loss.h>

#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/layers/internal/naming.h>

namespace keel {
namespace {

// Returns `weight` reshaped so that it broadcasts against `losses`. `what` names it in errors.
Tensor fit_weight(const std::string& caller, const char* what, const Tensor& weight,
                  const Tensor& losses) {
  Tensor typed = ops::cast(weight, losses.dtype());
  const Shape& want = losses.shape();
  const Shape& have = weight.shape();
  if (have.rank() == 0 || want.rank() == 0) return typed;
  bool fits = true;
  std::vector<int64_t> dims;
  bool ones_from_here = false;
  for (int axis = 0; axis < std::max(have.rank(), want.rank()); ++axis) {
    const int64_t dim = axis < have.rank() ? have[axis] : 1;
    const bool equal = axis < want.rank() && dim == want[axis];
    ones_from_here = ones_from_here || !equal;
    fits = fits && (!ones_from_here || dim == 1) && (axis > 0 || equal);
    if (axis < want.rank()) dims.push_back(dim);
  }
  if (!fits) {
    throw ValueError(caller, ": ", what, " must have the leading dimensions of the losses, ", want,
                     ", received shape ", have);
  }
  return ops::reshape(typed, Shape(dims));
}

// Returns the conjunction of two masks, either of which may be empty.
Tensor both(const Tensor& a, const Tensor& b) {
  if (!a || !b) return a ? a : b;
  return ops::where(a, b, ops::zeros_like(b));
}

// Returns true if the shapes are equal, where an unknown dimension matches any.
bool same_shape(const Tensor& a, const Tensor& b) { return compatible(a.shape(), b.shape()); }

}  // namespace

Reduction reduction_from_name(const std::string& name, const std::string& caller) {
  if (name == "sum_over_batch_size" || name == "mean" || name == "auto") {
    return Reduction::kSumOverBatchSize;
  }
  if (name == "sum") return Reduction::kSum;
  if (name == "mean_with_sample_weight") return Reduction::kMeanWithSampleWeight;
  if (name == "none") return Reduction::kNone;
  throw ValueError(caller,
                   ": reduction must be 'sum_over_batch_size', 'mean', 'sum', "
                   "'mean_with_sample_weight' or 'none', received '",
                   name, "'");
}

std::pair<Tensor, Tensor> fit_labels(const std::string& caller, const Tensor& y_true,
                                     const Tensor& y_pred) {
  if (!is_floating(y_pred.dtype())) {
    throw TypeError(caller, ": predictions must be float32 or float64, received ", y_pred.dtype());
  }
  if (y_pred.rank() == 0)
    throw ValueError(caller, ": predictions must have a batch dimension, received a scalar");
  Tensor prediction = y_pred.rank() == 1 ? ops::expand_dims(y_pred, -1) : y_pred;
  Tensor label = y_true;
  if (label.rank() + 1 == prediction.rank() && prediction.dim(-1) == 1) {
    label = ops::expand_dims(label, -1);
  } else if (label.rank() == prediction.rank() + 1 && label.dim(-1) == 1) {
    label = ops::squeeze(label, -1);
  }
  if (!same_shape(label, prediction)) {
    throw ValueError(caller, ": labels of shape ", y_true.shape(),
                     " do not match predictions of shape ", y_pred.shape(),
                     "; both must have the same shape");
  }
  if (label.dtype() != prediction.dtype()) label = ops::cast(label, prediction.dtype());
  return {label, prediction};
}

LabelKind label_kind(const Tensor& y_true, const Tensor& y_pred) {
  if (y_pred.rank() < 2 || y_pred.dim(-1) == 1) return LabelKind::kBinary;
  const bool sparse = y_true.rank() < y_pred.rank() || y_true.dim(-1) == 1;
  return sparse ? LabelKind::kSparseCategorical : LabelKind::kCategorical;
}

Loss::Loss(std::string class_name, std::string name, const std::string& reduction)
    : class_name_(std::move(class_name)),
      name_(name.empty() ? to_snake_case(class_name_) : std::move(name)),
      reduction_(reduction_from_name(reduction, class_name_)) {}

Loss::Parts Loss::parts(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight,
                        const SumOverReplicas& sum_over_replicas) const {
  Parts out;
  if (sparse_labels(y_true, y_pred)) {
    out.losses = per_sample(y_true, y_pred);
  } else {
    const auto [label, prediction] = fit_labels(name_, y_true, y_pred);
    out.losses = per_sample(label, prediction);
  }
  if (sample_weight) out.weight = fit_weight(name_, "sample_weight", sample_weight, out.losses);
  const Tensor mask = both(uses_mask() ? Tensor() : y_pred.mask(), out.losses.mask());
  if (!mask) return out;
  Tensor counted = fit_weight(name_, "the mask", mask, out.losses);
  if (reduction_ != Reduction::kSum && reduction_ != Reduction::kNone) {
    // The divisor of the reduction includes the excluded losses. The factor all / valid
    // compensates.
    const bool by_weight = reduction_ == Reduction::kMeanWithSampleWeight && out.weight;
    const Tensor ones = ops::ones_like(counted);
    const Tensor all = ops::sum(by_weight ? ones * out.weight : ones);
    const Tensor valid = ops::sum(by_weight ? counted * out.weight : counted);
    Tensor totals = ops::stack({all, valid});
    if (sum_over_replicas) totals = sum_over_replicas(totals);
    counted =
        counted * ops::divide_no_nan(ops::slice(totals, 0, 0, 1), ops::slice(totals, 0, 1, 1));
  }
  out.weight = out.weight ? counted * out.weight : counted;
  return out;
}

Tensor Loss::weighted(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight,
                      const SumOverReplicas& sum_over_replicas) const {
  const Parts p = parts(y_true, y_pred, sample_weight, sum_over_replicas);
  return p.weight ? p.losses * p.weight : p.losses;
}

double Loss::divisor(const Shape& losses, int64_t rows, double mean_weight) const {
  if (reduction_ == Reduction::kSum || reduction_ == Reduction::kNone) return 1;
  double count = 0;
  // The loss does not belong to single rows, so the sum over the replicas is divided by their
  // number.
  if (losses.rank() == 0 || mixes_rows(losses.rank())) {
    const ReplicaContext* context = current_replica_context();
    count = static_cast<double>(losses.size()) * (context == nullptr ? 1 : context->replicas);
  } else {
    count = static_cast<double>(rows * losses.slice(1, losses.rank()).size());
  }
  const double all = reduction_ == Reduction::kMeanWithSampleWeight ? count * mean_weight : count;
  return all > 0 ? all : 1;
}

Tensor Loss::call(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) const {
  const Parts p = parts(y_true, y_pred, sample_weight, {});
  Tensor losses = p.weight ? p.losses * p.weight : p.losses;
  if (reduction_ == Reduction::kNone || losses.rank() == 0) return losses;
  Tensor sum = ops::sum(losses);
  if (reduction_ == Reduction::kSum) return sum;
  if (reduction_ == Reduction::kMeanWithSampleWeight && p.weight) {
    return ops::divide_no_nan(sum, ops::sum(p.weight * ops::ones_like(losses)));
  }
  if (losses.is_symbolic()) return ops::mean(losses);
  return ops::scale(sum, 1.0 / static_cast<double>(std::max<int64_t>(losses.size(), 1)));
}

Config LossArgument::config() const {
  if (!name_.empty()) return name_;
  return loss_ == nullptr ? Config() : losses::serialize(*loss_);
}

}  // namespace keel
