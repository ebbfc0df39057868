#include <algorithm>
#include <cmath>

#include <keel/layers/internal/cast.h>
#include <keel/layers/preprocessing/internal/quantile_summary.h>
#include <keel/layers/preprocessing/internal/values.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/registry.h>

namespace keel {
DiscretizationLayer::DiscretizationLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      mode_(output_mode_from_name(options_.output_mode, "Discretization " + name())) {
  check_sparse(options_.sparse, mode_, "Discretization " + name());
  const auto& boundaries = options_.bin_boundaries;
  const auto& bins = options_.num_bins;
  if (!boundaries && !bins) {
    throw ValueError("Discretization ", name(),
                     ": pass bin_boundaries, or num_bins and call adapt()");
  }
  if (bins && *bins < 2) {
    throw ValueError("Discretization ", name(), ": num_bins must be at least 2, received ", *bins);
  }
  if (!(options_.epsilon > 0 && options_.epsilon <= 1)) {
    throw ValueError("Discretization ", name(), ": epsilon must be in (0, 1], received ",
                     options_.epsilon);
  }
  if (!boundaries) return;
  if (bins && *bins < std::ssize(*boundaries) + 1) {
    throw ValueError("Discretization ", name(), ": ", boundaries->size(), " boundaries define ",
                     boundaries->size() + 1, " bins, received num_bins ", *bins);
  }
  if (!std::ranges::is_sorted(*boundaries) ||
      std::ranges::any_of(*boundaries, [](double b) { return std::isnan(b); })) {
    throw ValueError("Discretization ", name(),
                     ": bin_boundaries must be ascending and must not contain NaN");
  }
  boundaries_ = *boundaries;
  has_boundaries_ = true;
}

Config DiscretizationLayer::get_config() const {
  Options options = options_;
  if (has_boundaries_) options.bin_boundaries = boundaries_;
  // In mode "int" Keras requires an integer dtype, because the bin numbers have this dtype.
  if (mode_ == OutputMode::kInt) options.dtype = DType::kInt64;
  return to_config(options);
}

Tensor DiscretizationLayer::bins(const Tensor& x) const {
  if (!has_boundaries_) {
    throw RuntimeError("Discretization ", name(),
                       ": bin boundaries are not set; call adapt() or pass bin_boundaries");
  }
  // Keras holds boundaries in float32, so that a float 0.1 equals the boundary 0.1. It casts inputs
  // to the dtype of the layer, which in mode "int" is an integer and leaves them as they are.
  const std::vector<float> boundaries(boundaries_.begin(), boundaries_.end());
  const Tensor in = mode_ != OutputMode::kInt && is_floating(x.dtype()) ? as_dtype(x, dtype()) : x;
  Tensor out = Tensor::uninitialized(x.shape(), DType::kInt64);
  visit_numeric(in.dtype(), "Discretization", [&]<class T>(const T&) {
    std::ranges::transform(in.data<T>(), out.mutable_data<int64_t>().begin(), [&](T value) {
      const auto it = std::ranges::upper_bound(boundaries, static_cast<double>(value));
      return static_cast<int64_t>(it - boundaries.begin());
    });
  });
  return out;
}

Tensors DiscretizationLayer::call(const Tensors& inputs, const CallContext&) {
  const TensorLike numbers =
      map_values(inputs.leaf(), DType::kInt64, [this](const Tensor& t) { return bins(t); });
  const int64_t depth = has_boundaries_ ? std::ssize(boundaries_) + 1 : *options_.num_bins;
  return encode_categories(numbers, {.mode = mode_, .depth = depth, .sparse = options_.sparse},
                           "Discretization " + name());
}

void DiscretizationLayer::adapt(const TensorLike& data) {
  QuantileSummary summary = empty_summary();
  add(data.values(), summary);
  take(summary);
}

void DiscretizationLayer::adapt(const data::Dataset& batches, std::optional<int64_t> steps) {
  QuantileSummary summary = empty_summary();
  for_each_batch(batches, steps, "Discretization " + name(),
                 [&](const TensorLike& x) { add(x.values(), summary); });
  take(summary);
}

QuantileSummary DiscretizationLayer::empty_summary() const {
  if (!options_.num_bins) {
    throw RuntimeError("Discretization ", name(),
                       ": adapt() requires num_bins; set it in the options");
  }
  return QuantileSummary(options_.epsilon);
}

void DiscretizationLayer::add(const Tensor& x, QuantileSummary& summary) const {
  std::vector<float> values = x.cast(DType::kFloat32).to_vector<float>();
  if (std::ranges::any_of(values, [](float v) { return std::isnan(v); })) {
    throw ValueError("Discretization ", name(),
                     ": adapt() received a NaN; remove it from the data");
  }
  summary.add(std::move(values));
}

void DiscretizationLayer::take(const QuantileSummary& summary) {
  if (summary.empty()) throw ValueError("Discretization ", name(), ": adapt() received no data");
  boundaries_ = summary.boundaries(static_cast<double>(*options_.num_bins));
  has_boundaries_ = true;
}

KEEL_REGISTER(Layer, DiscretizationLayer, .package = "keras")

}  // namespace keel
