#include <keel/savedmodel/serving/base/metrics.h>

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <algorithm>
#include <cmath>
#include <vector>

namespace keel::serving {
namespace {

constexpr int kLatencyLimits = 33;
constexpr int kExampleLimits = 15;

}  // namespace

std::span<const double> latency_limits() {
  static const std::array<double, kLatencyLimits> limits = [] {
    std::array<double, kLatencyLimits> out = {};
    for (int i = 0; i < kLatencyLimits; ++i) out[i] = 10 * std::pow(1.8, i);
    return out;
  }();
  return limits;
}

std::span<const double> example_limits() {
  static const std::array<double, kExampleLimits> limits = [] {
    std::array<double, kExampleLimits> out = {};
    for (int i = 0; i < kExampleLimits; ++i) out[i] = std::ldexp(1.0, i);
    return out;
  }();
  return limits;
}

const char* name_of(Api api) {
  constexpr const char* kNames[] = {"predict", "classify", "regress", "infer",
                                    "Predict", "Classify", "Regress", "ModelInfer"};
  return kNames[static_cast<size_t>(api)];
}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(limits_, value) - limits_.begin();
  counts_[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::array<Histogram, kApis> latencies() {
  const auto one = [] { return Histogram(latency_limits()); };
  return {one(), one(), one(), one(), one(), one(), one(), one()};
}

int64_t Histogram::count() const {
  int64_t out = 0;
  for (const auto& count : counts_) out += count.load(std::memory_order_relaxed);
  return out;
}

void Histogram::append_to(std::string& page, const std::string& name,
                          const std::string& labels) const {
  const std::string comma = labels.empty() ? "" : ",";
  int64_t total = 0;
  for (size_t i = 0; i <= limits_.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    const std::string limit = i < limits_.size() ? absl::StrCat(limits_[i]) : "+Inf";
    absl::StrAppend(&page, name, "_bucket{", labels, comma, "le=\"", limit, "\"} ", total, "\n");
  }
  const std::string sum = absl::StrFormat("%.17g", sum_.load(std::memory_order_relaxed));
  const std::string braces = labels.empty() ? "" : "{" + labels + "}";
  absl::StrAppend(&page, name, "_sum", braces, " ", sum, "\n", name, "_count", braces, " ", total,
                  "\n");
}

std::string label_value(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

}  // namespace keel::serving
