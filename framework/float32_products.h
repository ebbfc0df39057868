// Float32Products: how training multiplies float32 matrices where there is a choice.
#pragma once

#include <string_view>

namespace keel {

enum class Float32Products {
  // Each element of a product is one chain of multiply-adds.
  kMultiplyAdd,
  // In the tile registers of processors with AMX, where the system lets the process use them, some
  // 1.4 times as fast as multiply-adds: each operand is the sum of three bfloat16, and six of the
  // nine products of these are made, as XLA does on TPUs at the highest precision
  // (BF16_BF16_F32_X6). What is left out of x y is at most 2^-23 of it and some 2^-26 as a rule.
  // Sums are shorter, so that of numbers of one magnitude results have half the error of
  // multiply-adds as a rule, and of others the same.
  //
  // Tiles know no subnormal numbers: of operands and products below 2^-102 fewer digits count, and
  // those below 2^-126 are zero. Operands from 3.396e38 on, infinite ones too, make NaN, and a
  // product that is just below the largest float may become infinite. x y^T and y x^T may differ
  // in last bits.
  //
  // Small products are multiply-adds, and all are where there are no tiles. So the last bits of a
  // row may depend on how many are multiplied at once; not on workers, nor, among processes that
  // all may use tiles, on where a replica runs.
  kBfloat16x6,
};

// Holds for what is computed while a GradientTape of the thread is in use
// (GradientTape::any_in_use), its gradients included. All else, evaluation, prediction and serving,
// multiplies and adds: scores of one row are the same bits whoever asks.
// For all threads. The default is what the environment variable KEEL_FLOAT32_PRODUCTS names,
// "multiply_add" or "bfloat16_x6" (ValueError of the first tape for other names), else kBfloat16x6.
void set_float32_products(Float32Products products);
Float32Products float32_products();

std::string_view name_of(Float32Products products);
Float32Products float32_products_named(std::string_view name);  // ValueError

}  // namespace keel
