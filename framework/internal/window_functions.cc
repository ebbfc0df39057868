#include <keel/framework/internal/window_functions.h>

#include <algorithm>
#include <map>
#include <numbers>

#include <keel/framework/internal/math.h>

namespace keel::internal {

std::optional<std::vector<double>> cosine_window(std::string_view name, int64_t n, bool periodic) {
  // Coefficient k is of cos(2 pi k t), where t goes from 0 to 1.
  static const std::map<std::string_view, std::vector<double>> kCoefficients = {
      {"boxcar", {1}},
      {"hann", {0.5, -0.5}},
      {"hamming", {0.54, -0.46}},
      {"blackman", {0.42, -0.5, 0.08}}};
  const auto found = kCoefficients.find(name);
  if (found == kCoefficients.end()) return {};
  const auto steps = static_cast<double>(periodic ? n : n - 1);
  std::vector<double> out(std::max<int64_t>(n, 0));
  for (int64_t i = 0; i < n; ++i) {
    const double angle =
        steps > 0 ? 2 * std::numbers::pi * static_cast<double>(i) / steps : std::numbers::pi;
    for (size_t k = 0; k < found->second.size(); ++k) {
      out[i] += found->second[k] * math::cos(static_cast<double>(k) * angle);
    }
  }
  return out;
}

}  // namespace keel::internal
