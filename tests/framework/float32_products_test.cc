#include "framework/float32_products.h"

#include "gtest/gtest.h"

#include "framework/errors.h"

namespace keel::float32_products_test {

TEST(Float32ProductsTest, AreWhatWasAskedForLast) {
  const Float32Products before = float32_products();
  for (const auto products : {Float32Products::kMultiplyAdd, Float32Products::kBfloat16x6}) {
    set_float32_products(products);
    EXPECT_EQ(float32_products(), products);
  }
  set_float32_products(before);
}

TEST(Float32ProductsTest, AreKnownByName) {
  for (const auto products : {Float32Products::kMultiplyAdd, Float32Products::kBfloat16x6}) {
    EXPECT_EQ(float32_products_named(name_of(products)), products);
  }
  try {
    float32_products_named("tf32");
    FAIL() << "a name that there is not";
  } catch (const ValueError& error) {
    EXPECT_STREQ(
        error.what(),
        "float32 products (KEEL_FLOAT32_PRODUCTS) are 'multiply_add' or 'bfloat16_x6', received "
        "'tf32'");
  }
}

}  // namespace keel::float32_products_test
