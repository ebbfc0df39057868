#include <keel/framework/matmul_precision.h>

#include <atomic>
#include <cstdlib>

#include <keel/framework/base/errors.h>

namespace keel {
namespace {

constexpr char kVariable[] = "KEEL_MATMUL_PRECISION";

constexpr int kNotSet = -1;
std::atomic<int> current_precision = kNotSet;

MatmulPrecision precision_named(const char* context, std::string_view name) {
  for (const auto precision : {MatmulPrecision::kHighest, MatmulPrecision::kHigh}) {
    if (name_of(precision) == name) return precision;
  }
  throw ValueError(context, ": must be 'highest' or 'high', received '", name, "'");
}

MatmulPrecision initial_precision() {
  const char* const name = std::getenv(kVariable);
  return name == nullptr ? MatmulPrecision::kHighest : precision_named(kVariable, name);
}

}  // namespace

void set_matmul_precision(MatmulPrecision precision) {
  current_precision.store(static_cast<int>(precision), std::memory_order_relaxed);
}

void set_matmul_precision(std::string_view name) {
  set_matmul_precision(precision_named("set_matmul_precision", name));
}

MatmulPrecision matmul_precision() {
  const int precision = current_precision.load(std::memory_order_relaxed);
  if (precision != kNotSet) return static_cast<MatmulPrecision>(precision);
  static const MatmulPrecision kInitial = initial_precision();
  return kInitial;
}

std::string_view name_of(MatmulPrecision precision) {
  return precision == MatmulPrecision::kHigh ? "high" : "highest";
}

}  // namespace keel
