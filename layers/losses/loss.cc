#include "layers/losses/loss.h"

#include <algorithm>
#include <mutex>

#include "autodiff/ops.h"
#include "layers/losses/crossentropy.h"
#include "layers/losses/regression.h"

namespace keel {
namespace {

// sample_weight as a tensor that broadcasts against `losses`.
Tensor fit_weight(const std::string& who, const Tensor& weight, const Tensor& losses) {
  const Shape& want = losses.shape();
  const Shape& have = weight.shape();
  bool fits = have.rank() > 0;
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
    throw ValueError(who, ": sample_weight must have the leading dimensions of the losses, ", want,
                     ", received shape ", have);
  }
  const Tensor typed =
      weight.dtype() == losses.dtype() ? weight : ops::cast(weight, losses.dtype());
  return ops::reshape(typed, Shape(dims));
}

// Shapes agree, an unknown dimension with any.
bool same_shape(const Tensor& a, const Tensor& b) { return compatible(a.shape(), b.shape()); }

}  // namespace

Reduction reduction_from_name(const std::string& name, const std::string& who) {
  if (name == "sum_over_batch_size" || name == "auto") return Reduction::kSumOverBatchSize;
  if (name == "sum") return Reduction::kSum;
  if (name == "mean_with_sample_weight") return Reduction::kMeanWithSampleWeight;
  if (name == "none") return Reduction::kNone;
  throw ValueError(who,
                   ": reduction must be 'sum_over_batch_size', 'sum', 'mean_with_sample_weight' "
                   "or 'none', received '",
                   name, "'");
}

std::pair<Tensor, Tensor> fit_labels(const std::string& who, const Tensor& y_true,
                                     const Tensor& y_pred) {
  if (!is_floating(y_pred.dtype())) {
    throw TypeError(who, ": predictions must be float32 or float64, received ", y_pred.dtype());
  }
  if (y_pred.rank() == 0) throw ValueError(who, ": predictions must have a batch dimension");
  Tensor prediction = y_pred.rank() == 1 ? ops::expand_dims(y_pred, -1) : y_pred;
  Tensor label = y_true;
  if (label.rank() + 1 == prediction.rank() && prediction.dim(-1) == 1) {
    label = ops::expand_dims(label, -1);
  } else if (label.rank() == prediction.rank() + 1 && label.dim(-1) == 1) {
    label = ops::squeeze(label, -1);
  }
  if (!same_shape(label, prediction)) {
    throw ValueError(who, ": labels of shape ", y_true.shape(), " do not fit predictions of shape ",
                     y_pred.shape());
  }
  if (label.dtype() != prediction.dtype()) label = ops::cast(label, prediction.dtype());
  return {label, prediction};
}

Loss::Loss(std::string class_name, std::string name, const std::string& reduction)
    : class_name_(std::move(class_name)),
      name_(std::move(name)),
      reduction_(reduction_from_name(reduction, class_name_)) {}

Tensor Loss::weighted(const Tensor& y_true, const Tensor& y_pred,
                      const Tensor& sample_weight) const {
  Tensor losses;
  if (sparse_labels()) {
    losses = per_sample(y_true, y_pred);
  } else {
    const auto [label, prediction] = fit_labels(name_, y_true, y_pred);
    losses = per_sample(label, prediction);
  }
  return sample_weight ? losses * fit_weight(name_, sample_weight, losses) : losses;
}

double Loss::divisor(const Shape& losses, int64_t rows, double mean_weight) const {
  if (reduction_ == Reduction::kSum || reduction_ == Reduction::kNone) return 1;
  const double count = static_cast<double>(rows * losses.slice(1, losses.rank()).size());
  const double all = reduction_ == Reduction::kMeanWithSampleWeight ? count * mean_weight : count;
  return all > 0 ? all : 1;
}

Tensor Loss::call(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) const {
  Tensor losses = weighted(y_true, y_pred, sample_weight);
  if (reduction_ == Reduction::kNone) return losses;
  if (losses.is_symbolic() || losses.rank() == 0) return ops::mean(losses);
  double mean_weight = 1;
  if (sample_weight && sample_weight.size() > 0) {
    const Tensor weights = sample_weight.cast(DType::kFloat64);
    double sum = 0;
    for (const double w : weights.data<double>()) sum += w;
    mean_weight = sum / static_cast<double>(weights.size());
  }
  return ops::scale(ops::sum(losses), 1 / divisor(losses.shape(), losses.dim(0), mean_weight));
}

Registry<Loss>& loss_registry() {
  static Registry<Loss> registry("loss");
  static std::once_flag filled;
  std::call_once(filled, [] {
    registry.add<BinaryCrossentropyLoss>();
    registry.add<CategoricalCrossentropyLoss>();
    registry.add<SparseCategoricalCrossentropyLoss>();
    registry.add<MeanSquaredErrorLoss>();
    registry.add<MeanAbsoluteErrorLoss>();
    registry.add<HuberLoss>();
  });
  return registry;
}

Config LossArgument::config() const {
  if (!name_.empty()) return name_;
  return loss_ == nullptr ? Config() : losses::serialize(*loss_);
}

namespace losses {

LossHandle get(const std::string& name) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"binary_crossentropy", "BinaryCrossentropy"},
      {"bce", "BinaryCrossentropy"},
      {"BCE", "BinaryCrossentropy"},
      {"categorical_crossentropy", "CategoricalCrossentropy"},
      {"sparse_categorical_crossentropy", "SparseCategoricalCrossentropy"},
      {"mean_squared_error", "MeanSquaredError"},
      {"mse", "MeanSquaredError"},
      {"MSE", "MeanSquaredError"},
      {"mean_absolute_error", "MeanAbsoluteError"},
      {"mae", "MeanAbsoluteError"},
      {"MAE", "MeanAbsoluteError"},
      {"huber", "Huber"},
      {"Huber", "Huber"},
      {"huber_loss", "Huber"},
  };
  std::string class_name = name;
  for (const auto& [alias, known] : kNames) {
    if (name == alias) class_name = known;
  }
  return {kAdopt, loss_registry().make(class_name, Config::dict())};
}

Config serialize(const Loss& loss) {
  return Config::dict({{"class_name", loss.class_name()}, {"config", loss.get_config()}});
}

LossHandle deserialize(const Config& config) {
  if (config.is_string()) return get(config.string());
  Config parameters = config["config"];
  for (const char* unused : {"dtype", "fn"}) parameters.erase(unused);
  return {kAdopt, loss_registry().make(config["class_name"].string(), parameters)};
}

}  // namespace losses
}  // namespace keel
