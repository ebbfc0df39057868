#include "framework/float32_products.h"

#include <array>
#include <atomic>
#include <cstdlib>

#include "framework/errors.h"

namespace keel {
namespace {

constexpr std::array kAll = {Float32Products::kMultiplyAdd, Float32Products::kBfloat16x6};

std::atomic<Float32Products>& chosen() {
  static std::atomic<Float32Products> products = [] {
    const char* const name = std::getenv("KEEL_FLOAT32_PRODUCTS");
    return name == nullptr ? Float32Products::kBfloat16x6 : float32_products_named(name);
  }();
  return products;
}

}  // namespace

void set_float32_products(Float32Products products) {
  chosen().store(products, std::memory_order_relaxed);
}

Float32Products float32_products() { return chosen().load(std::memory_order_relaxed); }

std::string_view name_of(Float32Products products) {
  return products == Float32Products::kBfloat16x6 ? "bfloat16_x6" : "multiply_add";
}

Float32Products float32_products_named(std::string_view name) {
  for (const Float32Products products : kAll) {
    if (name_of(products) == name) return products;
  }
  throw ValueError("float32 products are '", name_of(kAll[0]), "' or '", name_of(kAll[1]),
                   "', received '", name, "'");
}

}  // namespace keel
