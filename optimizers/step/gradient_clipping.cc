#include <keel/optimizers/step/gradient_clipping.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace keel {

bool clips_by_norm(const StepPlan& plan) {
  return plan.updates && (plan.clipnorm > 0 || plan.global_clipnorm > 0);
}

std::vector<double> clip_factors(const StepPlan& plan, std::span<const double> squares) {
  std::vector<double> out(squares.size(), 1);
  if (plan.clipnorm > 0) {
    for (size_t i = 0; i < out.size(); ++i) {
      // std::max returns its first argument unless the comparison holds, so a NaN must come first
      // to be kept.
      out[i] = plan.clipnorm / std::max(std::sqrt(squares[i]), plan.clipnorm);
    }
  } else if (plan.global_clipnorm > 0) {
    double sum = 0;
    for (const double x : squares) sum += x;
    const double factor =
        std::isfinite(sum) ? plan.global_clipnorm / std::max(std::sqrt(sum), plan.global_clipnorm)
                           : std::numeric_limits<double>::quiet_NaN();
    std::ranges::fill(out, factor);
  }
  return out;
}

}  // namespace keel
