#include <keel/layers/preprocessing/internal/quantile_summary.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace keel {
namespace {

// Interpolates linearly between the points (xs, ys), where xs is ascending; constant beyond the
// ends.
double interpolated(double x, std::span<const double> xs, std::span<const double> ys) {
  const auto above = std::ranges::upper_bound(xs, x) - xs.begin();
  if (above == 0) return ys.front();
  if (above == std::ssize(xs)) return ys.back();
  const double slope = (ys[above] - ys[above - 1]) / (xs[above] - xs[above - 1]);
  return ys[above - 1] + slope * (x - xs[above - 1]);
}

}  // namespace

void QuantileSummary::add(std::vector<float> values) {
  if (values.empty()) return;
  std::ranges::sort(values);
  // Every step-th value represents `step` values: the last of its group.
  const double increment = static_cast<double>(values.size()) * epsilon_;
  const double step = std::max(increment, 1.0);
  Points merged;
  const size_t first = increment < 1 ? 0 : static_cast<size_t>(increment) - 1;
  for (size_t i = first; i < values.size(); i += static_cast<size_t>(step)) {
    merged.push_back({values[i], static_cast<float>(step)});
  }
  merged.insert(merged.end(), points_.begin(), points_.end());
  std::ranges::stable_sort(merged, {}, &Point::value);
  points_ = compressed(merged, epsilon_);
}

QuantileSummary::Points QuantileSummary::compressed(const Points& points, double epsilon) {
  if (static_cast<double>(points.size()) * epsilon < 1) return points;
  std::vector<double> values, ranks, shares;
  float total = 0;
  for (const Point& point : points) {
    total += point.weight;
    values.push_back(point.value);
    ranks.push_back(total);
  }
  for (double rank : ranks) shares.push_back(static_cast<float>(rank) / total);
  Points out;
  double last_rank = 0;
  const auto count = static_cast<int64_t>(std::ceil(1 / epsilon));
  for (int64_t i = 0; i < count; ++i) {
    const double share = epsilon + static_cast<double>(i) * epsilon;
    const double rank = interpolated(share, shares, ranks);
    out.push_back({static_cast<float>(interpolated(share, shares, values)),
                   static_cast<float>(rank - last_rank)});
    last_rank = rank;
  }
  return out;
}

std::vector<double> QuantileSummary::boundaries(double bins) const {
  const Points points = compressed(points_, 1 / bins);
  std::vector<double> out;
  for (size_t i = 0; i + 1 < points.size(); ++i) out.push_back(points[i].value);
  return out;
}

}  // namespace keel
