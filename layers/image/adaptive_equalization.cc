#include <keel/layers/image/adaptive_equalization.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/keras_ops/internal/resample.h>
#include <keel/framework/base/parallel.h>
#include <keel/layers/image/internal/value_scale.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

constexpr int64_t kLevels = 256;
constexpr int64_t kMostTiles = 4096;  // along an axis

// One channel of an image: the pixel (row, column) is values[row * row_step + column * step].
struct Plane {
  double* values;
  int64_t height, width, step;

  double& at(int64_t row, int64_t column) const { return values[(row * width + column) * step]; }
};

// NaN counts as 0.
int64_t level_of(double value) {
  return value > 0 ? static_cast<int64_t>(std::min(value, 255.0)) : 0;
}

// The tiles along an axis.
struct TileAxis {
  int64_t count, size;

  TileAxis(int64_t positions, int64_t tiles)
      : count(tiles), size((positions + tiles - 1) / tiles) {}
  // Returns the tile before a position, the one after it, and the weight of the latter.
  std::tuple<int64_t, int64_t, double> around(int64_t position) const {
    const auto wide = static_cast<double>(size);
    const double at = (static_cast<double>(position) - wide / 2) / wide;
    const auto first = static_cast<int64_t>(std::floor(at));
    return {std::clamp<int64_t>(first, 0, count - 1), std::clamp<int64_t>(first + 1, 0, count - 1),
            at - std::floor(at)};
  }
};

// Returns the new value of each level in a tile.
std::vector<double> level_map(std::vector<double> counts, double clip_limit, double pixels) {
  if (clip_limit > 0) {
    const double limit = clip_limit * pixels / kLevels;
    double excess = 0;
    for (double& count : counts) {
      excess += std::max(0.0, count - limit);
      count = std::min(count, limit);
    }
    for (double& count : counts) count += excess / kLevels;
  }
  const double least = counts[0];
  const double rest = pixels - least;
  double sum = 0;
  for (double& count : counts) {
    sum += count;
    count = std::clamp((sum - least) * 255 / (rest == 0 ? 1 : rest), 0.0, 255.0);
  }
  return counts;
}

void equalize_by_tiles(const Plane& plane, const TileAxis& rows, const TileAxis& columns,
                       double clip_limit) {
  using keras_ops::internal::FillMode;
  using keras_ops::internal::position_at;
  std::vector<std::vector<double>> maps(rows.count * columns.count,
                                        std::vector<double>(kLevels, 0.0));
  for (int64_t r = 0; r < rows.count * rows.size; ++r) {
    for (int64_t c = 0; c < columns.count * columns.size; ++c) {
      const double value = plane.at(position_at(r, plane.height, FillMode::kReflect),
                                    position_at(c, plane.width, FillMode::kReflect));
      maps[r / rows.size * columns.count + c / columns.size][level_of(value)] += 1;
    }
  }
  for (auto& map : maps) {
    map = level_map(std::move(map), clip_limit, static_cast<double>(rows.size * columns.size));
  }
  for (int64_t r = 0; r < plane.height; ++r) {
    const auto [top, bottom, down] = rows.around(r);
    for (int64_t c = 0; c < plane.width; ++c) {
      const auto [left, right, along] = columns.around(c);
      const int64_t level = level_of(plane.at(r, c));
      const auto value = [&](int64_t row, int64_t column) {
        return maps[row * columns.count + column][level];
      };
      const double upper = value(top, left) * (1 - along) + value(top, right) * along;
      const double lower = value(bottom, left) * (1 - along) + value(bottom, right) * along;
      plane.at(r, c) = upper * (1 - down) + lower * down;
    }
  }
}

}  // namespace

ContrastLimitedAdaptiveHistogramEqualizationLayer::
    ContrastLimitedAdaptiveHistogramEqualizationLayer(Options options)
    : OptionsLayer(kClassName, std::move(options)) {
  for (const int64_t tiles : options_.tile_grid_size.values()) {
    if (tiles > 0 && tiles <= kMostTiles) continue;
    throw ValueError(caller(), ": tile_grid_size must be in [1, ", kMostTiles, "], received ",
                     tiles);
  }
}

Tensor ContrastLimitedAdaptiveHistogramEqualizationLayer::transform_images(
    const Tensor& images, const ImageRandom&) const {
  if (images.size() == 0) return images;
  const ValueRange bytes = {0, 255};
  std::vector<double> values =
      as_dtype(rescaled(images, options_.value_range, bytes), DType::kFloat64).to_vector<double>();
  const int64_t height = images.dim(1), width = images.dim(2), channels = images.dim(3);
  const TileAxis rows(height, options_.tile_grid_size[0]);
  const TileAxis columns(width, options_.tile_grid_size[1]);
  parallel_for(images.dim(0) * channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double* const first = values.data() + i / channels * height * width * channels + i % channels;
      equalize_by_tiles({first, height, width, channels}, rows, columns, options_.clip_limit);
    }
  });
  return rescaled(as_dtype(Tensor::from(values, images.shape()), images.dtype()), bytes,
                  options_.value_range);
}

KEEL_REGISTER(Layer, ContrastLimitedAdaptiveHistogramEqualizationLayer, .package = "keras",
              .call = "data, training", .ignored_keys = "bounding_box_format=null")

}  // namespace keel
