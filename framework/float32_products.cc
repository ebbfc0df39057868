#include "framework/float32_products.h"

#include <array>
#include <atomic>
#include <cstdlib>

#include "framework/errors.h"

namespace keel {
namespace {

constexpr std::array kAll = {Float32Products::kMultiplyAdd, Float32Products::kBfloat16x6};
constexpr char kVariable[] = "KEEL_FLOAT32_PRODUCTS";

constexpr int kNotSet = -1;
std::atomic<int> set_last = kNotSet;

Float32Products by_default() {
  const char* const name = std::getenv(kVariable);
  return name == nullptr ? Float32Products::kBfloat16x6 : float32_products_named(name);
}

}  // namespace

void set_float32_products(Float32Products products) {
  set_last.store(static_cast<int>(products), std::memory_order_relaxed);
}

Float32Products float32_products() {
  const int last = set_last.load(std::memory_order_relaxed);
  if (last != kNotSet) return static_cast<Float32Products>(last);
  static const Float32Products kDefault = by_default();
  return kDefault;
}

std::string_view name_of(Float32Products products) {
  return products == Float32Products::kBfloat16x6 ? "bfloat16_x6" : "multiply_add";
}

Float32Products float32_products_named(std::string_view name) {
  for (const Float32Products products : kAll) {
    if (name_of(products) == name) return products;
  }
  throw ValueError("float32 products (", kVariable, ") are '", name_of(kAll[0]), "' or '",
                   name_of(kAll[1]), "', received '", name, "'");
}

}  // namespace keel
