#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <keel/framework/internal/math.h>
#include <keel/layers/serving/steps/planner.h>

namespace keel {
namespace {

using Kind = RowFunction::Kind;

constexpr std::array<std::pair<const char*, Kind>, 11> kNames = {{{"linear", Kind::kLinear},
                                                                  {"relu", Kind::kRelu},
                                                                  {"leaky_relu", Kind::kLeakyRelu},
                                                                  {"elu", Kind::kElu},
                                                                  {"sigmoid", Kind::kSigmoid},
                                                                  {"tanh", Kind::kTanh},
                                                                  {"silu", Kind::kSilu},
                                                                  {"softplus", Kind::kSoftplus},
                                                                  {"exponential", Kind::kExp},
                                                                  {"gelu", Kind::kGelu},
                                                                  {"softmax", Kind::kSoftmax}}};

float positive(float x) { return x < 0 ? 0 : x; }  // preserves NaN
float negative(float x) { return x > 0 ? 0 : x; }

template <class Fn>
void map(float* row, int64_t n, const Fn& fn) {
  for (int64_t i = 0; i < n; ++i) row[i] = fn(row[i]);
}

// Sums in the order of ops::softmax, so that results have the same bits.
void softmax(float* row, int64_t n) {
  if (n == 0) return;
  float top = row[0];
  for (int64_t i = 1; i < n; ++i) top = row[i] > top ? row[i] : top;
  for (int64_t i = 0; i < n; ++i) row[i] = math::exp(row[i] - top);
  double lanes[4] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % 4] += row[i];
  const double total = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
  const auto factor = static_cast<float>(1 / total);
  for (int64_t i = 0; i < n; ++i) row[i] *= factor;
}

}  // namespace

std::optional<RowFunction> RowFunction::of(const Activation& activation) {
  const std::string& name = activation.name();
  if (!activation.is(name)) return {};
  const auto at = std::ranges::find_if(kNames, [&](const auto& n) { return n.first == name; });
  if (name == "swish") return RowFunction(Kind::kSilu);
  if (at == kNames.end()) return {};
  return RowFunction(at->second, at->second == Kind::kLeakyRelu ? 0.2 : 1.0);
}

std::string RowFunction::name() const {
  return std::ranges::find_if(kNames, [&](const auto& n) { return n.second == kind_; })->first;
}

void RowFunction::apply(float* row, int64_t n) const {
  const float a = parameter_;
  switch (kind_) {
    case Kind::kLinear:
      return;
    case Kind::kRelu:
      return map(row, n, positive);
    case Kind::kLeakyRelu:
      return map(row, n, [a](float x) { return positive(x) + a * negative(x); });
    case Kind::kElu:
      return map(row, n, [a](float x) {
        const float t = math::tanh(negative(x) * 0.5F);
        return positive(x) + t / (1 - t) * 2 * a;
      });
    case Kind::kSigmoid:
      return map(row, n, [](float x) { return math::sigmoid(x); });
    case Kind::kTanh:
      return map(row, n, [](float x) { return math::tanh(x); });
    case Kind::kSilu:
      return map(row, n, [](float x) { return x * math::sigmoid(x); });
    case Kind::kSoftplus:
      return map(row, n, [](float x) { return math::softplus(x); });
    case Kind::kExp:
      return map(row, n, [](float x) { return math::exp(x); });
    case Kind::kGelu: {
      constexpr auto kScale = static_cast<float>(std::numbers::sqrt2 / 2);
      return map(row, n, [](float x) { return x * (math::erf(x * kScale) + 1) * 0.5F; });
    }
    case Kind::kSoftmax:
      return softmax(row, n);
  }
}

}  // namespace keel
