#include <keel/layers/image/tone.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/layers/image/internal/value_scale.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

const ValueRange kBytes = {0, 255};

FactorRange from_zero(const FactorRange& factor, const std::string& argument) {
  const FactorRange checked = factor.within(0, 1, argument);
  return factor.is_pair() ? checked : FactorRange(0, checked.high());
}

SolarizationOptions with_pairs(SolarizationOptions options) {
  options.addition_factor = from_zero(options.addition_factor, "Solarization: addition_factor");
  options.threshold_factor = from_zero(options.threshold_factor, "Solarization: threshold_factor");
  return options;
}

}  // namespace

Tensor AutoContrastLayer::transform_images(const Tensor& images, const ImageRandom&) const {
  if (images.size() == 0) return images;
  const Tensor x = rescaled(images, options_.value_range, kBytes);
  const Tensor low = ops::min(x, {1, 2}, true), high = ops::max(x, {1, 2}, true);
  const Tensor flat = ops::equal(low, high);
  const Tensor range = ops::where(flat, ops::ones_like(low), high - low);
  const Tensor scale = (ops::ones_like(range) * 255.0) / range;
  const Tensor stretched = ops::clip_by_value(x * scale - low * scale, 0, 255);
  return ops::where(flat, images, rescaled(stretched, kBytes, options_.value_range));
}

EqualizationLayer::EqualizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  if (options_.bins < 2) {
    throw ValueError(caller(), ": bins must be at least 2, received ", options_.bins);
  }
}

// Returns the values of a channel, which are scaled to [0, 255], after the equalization.
Tensor EqualizationLayer::equalized(const Tensor& channel) const {
  const std::vector<double> values = as_dtype(channel, DType::kFloat64).to_vector<double>();
  const int64_t last = options_.bins - 1;
  const auto bin_of = [last](double v) {
    const double at = v / 255 * static_cast<double>(last);
    // NaN counts as 0.
    return at > 0 ? static_cast<int64_t>(std::min(at, static_cast<double>(last))) : 0;
  };
  std::vector<int64_t> counts(options_.bins);
  for (const double v : values) ++counts[bin_of(v)];
  if (std::ranges::count_if(counts, [](int64_t n) { return n > 0; }) <= 1) return channel;
  const int64_t first = *std::ranges::find_if(counts, [](int64_t n) { return n > 0; });
  const auto rest = static_cast<double>(std::ssize(values) - first);
  std::vector<double> table;
  int64_t sum = 0;
  for (const int64_t n : counts) {
    sum += n;
    const double level = std::nearbyint(static_cast<double>(sum - first) * 255 / rest);
    table.push_back(std::clamp(level, 0.0, 255.0));
  }
  std::vector<double> out;
  for (const double v : values) out.push_back(table[bin_of(v)]);
  return as_dtype(Tensor::from(out, channel.shape()), channel.dtype());
}

Tensor EqualizationLayer::transform_images(const Tensor& images, const ImageRandom&) const {
  if (images.size() == 0) return images;
  std::vector<Tensor> channels = ops::split(images, images.dim(3), 3);
  for (Tensor& channel : channels) {
    channel = rescaled(equalized(rescaled(channel, options_.value_range, kBytes)), kBytes,
                       options_.value_range);
  }
  return ops::concat(channels, 3);
}

SolarizationLayer::SolarizationLayer(Options options)
    : OptionsLayer(kClassName, with_pairs(std::move(options))) {}

Tensor SolarizationLayer::transform_images(const Tensor& images, const ImageRandom& random) const {
  // As in Keras, the lower end of a range is not scaled.
  const auto numbers = [&](int k, const FactorRange& factor) {
    return for_each_image(random.uniforms(images.dim(0), k, {factor.low(), 255 * factor.high()}));
  };
  const Tensor x = rescaled(images, options_.value_range, kBytes);
  const Tensor sum = ops::clip_by_value(x + numbers(0, options_.addition_factor), 0, 255);
  const Tensor below = ops::less(sum, numbers(1, options_.threshold_factor));
  return rescaled(ops::where(below, sum, -sum + 255.0), kBytes, options_.value_range);
}

#define REGISTER(name)                                                     \
  KEEL_REGISTER(Layer, name, .package = "keras", .call = "data, training", \
                .ignored_keys = "bounding_box_format=null")
REGISTER(AutoContrastLayer)
REGISTER(EqualizationLayer)
REGISTER(SolarizationLayer)
#undef REGISTER

}  // namespace keel
