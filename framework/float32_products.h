// Float32Products: how training multiplies float32 matrices where there is a choice.
#pragma once

#include <string_view>

namespace keel {

enum class Float32Products {
  // Each element of a product is one chain of multiply-adds.
  kMultiplyAdd,
  // In the tile registers of processors with AMX, where the kernel lets the process use them, some
  // 1.4 times as fast as multiply-adds: each operand is the sum of three bfloat16, and six of the
  // nine products of these are made, as XLA does on TPUs at the highest precision
  // (BF16_BF16_F32_X6). What is left out of x y is at most 2^-23 of it and some 2^-26 as a rule;
  // since sums are shorter, results are nearer to the exact ones than those of multiply-adds, as a
  // rule twice. Numbers from 3.39e38 on and infinite ones make NaN; of those below 2^-110 fewer
  // digits count, of those below 2^-126 none. Small products are multiply-adds, and all are on
  // other
  // processors: so the last bits of a row may depend on how many are multiplied at once, but not on
  // workers, nor on where a replica runs.
  kBfloat16x6,
};

// Holds for what GradientTapes record and their gradients. All else, evaluation, prediction and
// serving, multiplies and adds: scores of one row are the same bits whoever asks.
// For all threads. The default is kBfloat16x6 or what the environment variable
// KEEL_FLOAT32_PRODUCTS names: "multiply_add" or "bfloat16_x6" (ValueError from the first step on
// for other names).
void set_float32_products(Float32Products products);
Float32Products float32_products();

std::string_view name_of(Float32Products products);
Float32Products float32_products_named(std::string_view name);  // ValueError

}  // namespace keel
