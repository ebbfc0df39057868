#include <keel/layers/normalization/normalization.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <keel/autodiff/tape.h>
#include <keel/framework/data/dataset.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

// Computes mean and sum of squared deviations of each kept position row by row (Welford 1962),
// which avoids subtracting large sums.
class Moments {
 public:
  explicit Moments(const Shape& shape)
      : shape_(shape), mean_(shape.size()), deviations_(shape.size()) {}

  // `values` are rows of kept positions.
  void add(std::span<const double> values, int64_t rows) {
    const auto width = std::ssize(mean_);
    for (int64_t row = 0; row < rows; ++row) {
      ++count_;
      for (int64_t k = 0; k < width; ++k) {
        const double x = values[row * width + k];
        const double delta = x - mean_[k];
        mean_[k] += delta / static_cast<double>(count_);
        deviations_[k] += delta * (x - mean_[k]);
      }
    }
  }

  int64_t count() const { return count_; }
  Tensor mean(DType dtype) const { return Tensor::from(mean_, shape_).cast(dtype); }
  Tensor variance(DType dtype) const {
    std::vector<double> out = deviations_;
    for (double& v : out) v /= static_cast<double>(count_);
    return Tensor::from(out, shape_).cast(dtype);
  }

 private:
  const Shape shape_;
  std::vector<double> mean_, deviations_;
  int64_t count_ = 0;
};

Shape kept_shape(const Shape& shape, const std::vector<int>& axes) {
  Shape out;
  for (int axis : axes) out = out.inserted(out.rank(), shape[axis]);
  return out;
}

// Returns x as float64 with the kept axes last.
Tensor kept_last(const Tensor& x, const std::vector<int>& axes) {
  Tensor values = x.cast(DType::kFloat64);
  std::vector<int> permutation;
  for (int i = 0; i < x.rank(); ++i) {
    if (!std::ranges::binary_search(axes, i)) permutation.push_back(i);
  }
  permutation.insert(permutation.end(), axes.begin(), axes.end());
  if (std::ranges::is_sorted(permutation)) return values;
  return ops::transpose(values, permutation);
}

}  // namespace

NormalizationLayer::NormalizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.mean.has_value() != options_.variance.has_value()) {
    throw ValueError("Normalization ", name(),
                     ": received one of mean and variance; pass both, or neither and call adapt()");
  }
}

std::vector<int> NormalizationLayer::axes(const Shape& shape) const {
  if (!options_.axis || options_.axis->values().empty()) return {};
  return options_.axis->normalized(shape, "Normalization " + name());
}

void NormalizationLayer::build_weights(const TensorSpec& input) {
  const Shape shape = kept_shape(input.shape, axes(input.shape));
  if (!shape.fully_defined()) {
    throw ValueError("Normalization ", name(),
                     ": dimensions along the axes must be known, received shape ", input.shape);
  }
  if (options_.mean) {
    for (const ScalarOrList* given : {&*options_.mean, &*options_.variance}) {
      const auto count = std::ssize(given->values());
      if (count != 1 && count != shape.size()) {
        throw ValueError("Normalization ", name(), ": mean and variance must have 1 or ",
                         shape.size(), " values, received ", count, " for an input of shape ",
                         input.shape);
      }
    }
    return;
  }
  const auto add = [&](const char* name, const Shape& of, const char* initializer, DType dtype) {
    return add_weight({.name = name,
                       .shape = of,
                       .initializer = initializer,
                       .trainable = false,
                       .dtype = dtype});
  };
  mean_ = add("mean", shape, "zeros", dtype());
  variance_ = add("variance", shape, "ones", dtype());
  count_ = add("count", {}, "zeros", DType::kInt64);
}

NormalizationLayer::Statistics NormalizationLayer::statistics() const {
  constexpr double kLeastDeviation = 1e-7;
  const Tensor variance = options_.variance ? options_.variance->tensor(dtype()) : variance_.read();
  return {.mean = options_.mean ? options_.mean->tensor(dtype()) : mean_.read(),
          .deviation = ops::clip_by_value(ops::sqrt(variance), kLeastDeviation,
                                          std::numeric_limits<double>::infinity())};
}

std::optional<PlanValues> NormalizationLayer::plan(Planner& planner,
                                                   const PlanValues& inputs) const {
  const auto x = planner.rows(inputs, true);
  if (!x || dtype() != DType::kFloat32) return {};
  const Shape shape = planner.spec((*x)[0]).shape;
  const std::vector<int> kept = axes(shape);
  if (kept.size() > 1 || (!kept.empty() && kept[0] != shape.rank() - 1)) return {};
  const NoGradient pause;
  const Statistics known = statistics();
  const Tensor zero = ops::zeros_like(known.mean);
  const std::optional<PlanValue> y = planner.affine(
      (*x)[0],
      options_.invert
          ? Planner::Affine{.center = zero, .factor = known.deviation, .offset = known.mean}
          : Planner::Affine{
                .center = known.mean, .factor = known.deviation, .offset = zero, .divides = true});
  if (!y) return {};
  return *y;
}

Tensor NormalizationLayer::call(const Tensor& input, const CallContext&) {
  const Tensor x = as_dtype(input, dtype());
  const std::vector<int> kept = axes(x.shape());
  Shape broadcast;
  for (int i = 0; i < x.rank(); ++i) {
    broadcast = broadcast.inserted(i, std::ranges::binary_search(kept, i) ? x.dim(i) : 1);
  }
  const auto spread = [&](const Tensor& t) {
    return t.size() == 1 ? t.reshaped({}) : t.reshaped(broadcast);
  };
  const Statistics known = statistics();
  const Tensor mean = spread(known.mean), deviation = spread(known.deviation);
  return options_.invert ? x * deviation + mean : (x - mean) / deviation;
}

void NormalizationLayer::adapt(const Tensor& data) {
  adapt(data::Dataset::from_tensors(Tensors(data)));
}

void NormalizationLayer::adapt(const data::Dataset& batches) {
  if (options_.mean) {
    throw RuntimeError(
        "Normalization ", name(),
        ": adapt() cannot replace the given mean and variance; construct the layer without them");
  }
  std::optional<Moments> moments;
  for (const Tensors& element : batches) {
    const Tensor x = element.tensor();
    const std::vector<int> kept = axes(x.shape());
    if (!built()) build(Specs(TensorSpec{.shape = x.shape(), .dtype = x.dtype()}));
    if (kept_shape(x.shape(), kept) != mean_.shape()) {
      throw ValueError("Normalization ", name(), ": adapt() requires dimensions ", mean_.shape(),
                       " along the axes, received a batch of shape ", x.shape());
    }
    if (!moments) moments.emplace(mean_.shape());
    const int64_t width = mean_.shape().size();
    const Tensor rows = kept_last(x, kept);
    if (width > 0) moments->add(rows.data<double>(), rows.size() / width);
  }
  if (!moments || moments->count() == 0) {
    throw ValueError("Normalization ", name(), ": adapt() received no data; pass at least one row");
  }
  mean_.assign(moments->mean(dtype()));
  variance_.assign(moments->variance(dtype()));
  count_.assign(Tensor::scalar<int64_t>(moments->count()));
}

KEEL_REGISTER(Layer, NormalizationLayer, .package = "keras")

}  // namespace keel
