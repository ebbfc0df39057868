#include "layers/preprocessing/discretization.h"

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

void append(const Tensor& x, std::vector<double>& values) {
  const Tensor doubles = x.cast(DType::kFloat64);
  const auto from = doubles.data<double>();
  values.insert(values.end(), from.begin(), from.end());
}

}  // namespace

DiscretizationLayer::DiscretizationLayer(Options options)
    : Layer(kClassName, options),
      options_(std::move(options)),
      mode_(output_mode_from_name(options_.output_mode, "Discretization " + name())) {
  const auto& boundaries = options_.bin_boundaries;
  const auto& bins = options_.num_bins;
  if (!boundaries && !bins) {
    throw ValueError("Discretization ", name(), ": needs bin_boundaries or num_bins");
  }
  if (bins && *bins < 2) {
    throw ValueError("Discretization ", name(), ": num_bins must be at least 2, received ", *bins);
  }
  if (!boundaries) return;
  if (bins && *bins != std::ssize(*boundaries) + 1) {
    throw ValueError("Discretization ", name(), ": ", boundaries->size(), " boundaries make ",
                     boundaries->size() + 1, " bins, received num_bins ", *bins);
  }
  if (!std::ranges::is_sorted(*boundaries) ||
      std::ranges::any_of(*boundaries, [](double b) { return std::isnan(b); })) {
    throw ValueError("Discretization ", name(), ": bin_boundaries must ascend");
  }
  boundaries_ = *boundaries;
  has_boundaries_ = true;
}

Config DiscretizationLayer::get_config() const {
  Options options = options_;
  if (has_boundaries_) options.bin_boundaries = boundaries_;
  return to_config(options);
}

Tensor DiscretizationLayer::bins(const Tensor& x) const {
  if (!has_boundaries_) {
    throw RuntimeError("Discretization ", name(), ": has no boundaries yet; call adapt()");
  }
  Tensor out = Tensor::uninitialized(x.shape(), DType::kInt64);
  visit_numeric(x.dtype(), "Discretization", [&]<class T>(const T&) {
    std::ranges::transform(x.data<T>(), out.mutable_data<int64_t>().begin(), [&](T value) {
      const auto it = std::ranges::upper_bound(boundaries_, static_cast<double>(value));
      return static_cast<int64_t>(it - boundaries_.begin());
    });
  });
  return out;
}

Tensors DiscretizationLayer::call(const Tensors& inputs, const CallContext&) {
  const TensorLike numbers =
      map_values(inputs.leaf(), DType::kInt64, [this](const Tensor& t) { return bins(t); });
  const int64_t depth = options_.num_bins.value_or(std::ssize(boundaries_) + 1);
  return encode_categories(numbers, mode_, depth, "Discretization " + name());
}

void DiscretizationLayer::adapt(const TensorLike& data) {
  std::vector<double> values;
  append(data.values(), values);
  take(std::move(values));
}

void DiscretizationLayer::adapt(const data::Dataset& batches) {
  std::vector<double> values;
  for_each_batch(batches, "Discretization " + name(),
                 [&](const TensorLike& x) { append(x.values(), values); });
  take(std::move(values));
}

void DiscretizationLayer::take(std::vector<double> values) {
  if (!options_.num_bins) {
    throw RuntimeError("Discretization ", name(),
                       ": its boundaries are given; there is nothing to adapt");
  }
  if (values.empty()) throw ValueError("Discretization ", name(), ": adapt() received no data");
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) {
    throw ValueError("Discretization ", name(), ": cannot adapt to a NaN");
  }
  std::ranges::sort(values);
  const auto count = static_cast<double>(values.size());
  boundaries_.clear();
  for (int64_t k = 1; k < *options_.num_bins; ++k) {
    const double rank = static_cast<double>(k) * count / static_cast<double>(*options_.num_bins);
    const double below = std::clamp(std::floor(rank), 1.0, count);
    const double above = std::min(below + 1, count);
    const double low = values[static_cast<size_t>(below) - 1];
    const double high = values[static_cast<size_t>(above) - 1];
    boundaries_.push_back(rank <= below ? low : low + (high - low) * (rank - below));
  }
  has_boundaries_ = true;
}

}  // namespace keel
