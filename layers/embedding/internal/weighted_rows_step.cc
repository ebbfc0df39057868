#include <keel/layers/embedding/internal/weighted_rows_step.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>
#include <span>

#include <keel/framework/base/errors.h>
#include <keel/framework/kernels/reduce.h>
#include <keel/framework/kernels/update_rules/finite.h>

namespace keel {

using FloatSum = kernels::Sum<float>;

// Returns the number by which the sum of a row is divided; 0 gives zeros.
float WeightedRowsStep::divisor(const float* weights, float* scratch) const {
  if (form_.combiner == kernels::Combiner::kMean) {
    return static_cast<float>(kernels::reduce_run<FloatSum>(weights, form_.ids));
  }
  std::transform(weights, weights + form_.ids, scratch, [](float w) { return w * w; });
  return std::sqrt(static_cast<float>(kernels::reduce_run<FloatSum>(scratch, form_.ids)));
}

void WeightedRowsStep::run(const PlanCall& call) const {
  constexpr int64_t kStrip = 256;
  const auto [ids, dim, pools, pooled, combiner] = form_;
  const PlanRows rows = call[rows_], weights = call[weights_], out = call[out_];
  float* const products = call.scratch;
  for (int64_t r = 0; r < call.rows; ++r) {
    const float* const w = weights[r];
    const int64_t bad = kernels::first_not_finite(std::span(w, static_cast<size_t>(ids)));
    if (bad >= 0) {
      throw ValueError(caller_, ": the weight at position ", (call.begin + r) * ids + bad, " is ",
                       w[bad], "; weights must be finite");
    }
    float* const to = pools ? products : out[r];
    for (int64_t i = 0; i < ids; ++i) {
      const float* const row = rows[r] + i * dim;
      for (int64_t d = 0; d < dim; ++d) to[i * dim + d] = (pooled ? 0.0F + row[d] : row[d]) * w[i];
    }
    if (!pools) continue;
    const bool divides = combiner != kernels::Combiner::kSum;
    const float by = divides ? divisor(w, products + ids * dim) : 1;
    for (int64_t begin = 0; begin < dim; begin += kStrip) {
      double totals[kStrip];
      const int64_t columns = std::min(kStrip, dim - begin);
      std::fill_n(totals, columns, 0.0);
      kernels::reduce_rows<FloatSum>(products + begin, ids, dim, columns, totals);
      for (int64_t d = 0; d < columns; ++d) {
        const auto sum = static_cast<float>(totals[d]);
        out[r][begin + d] = !divides ? sum : by == 0 ? 0 : sum / by;
      }
    }
  }
}

std::string WeightedRowsStep::what() const {
  return absl::StrCat("pools ", form_.ids, " weighted rows of ", form_.dim, " floats");
}

}  // namespace keel
