// MatmulPrecision: how exactly products of matrices are computed where there is a choice.
#pragma once

#include <string_view>

namespace keel {

enum class MatmulPrecision {
  // "highest", the default. A float32 product is one chain of fused multiply-adds for each element,
  // a product of bfloat16 (the policy mixed_bfloat16) the chain that
  // framework/kernels/gemm/gemm_bf16.h
  // describes. The bits are the same on every machine.
  kHighest,
  // "high". Products use the tile registers of processors with AMX where Linux lets the process use
  // them, and are those of kHighest elsewhere. So the last bits depend on the processor.
  //
  // float32: for what is computed while a GradientTape of the thread is in use
  // (GradientTape::any_in_use), its gradients included, and for matrices large enough to gain.
  // Evaluation, prediction and serving stay at kHighest, so the score of a row does not depend on
  // who computes it. Each operand is the sum of three bfloat16, and six of the nine products of
  // these are computed, as XLA does on TPUs at its highest precision (BF16_BF16_F32_X6): some 1.4
  // times as fast as multiply-adds. The products left out are at most 2^-23 of a term. Sums are
  // shorter, so the error is half that of multiply-adds for operands of one magnitude, and the same
  // for others. The limits of tiles:
  //   - subnormal numbers are zero, and operands and products below 2^-102 lose digits;
  //   - operands from 3.396e38 on, infinite ones too, give NaN;
  //   - a product just below the largest float may become infinite;
  //   - x y^T and y x^T may differ in the last bits;
  //   - the last bits of a row may depend on how many rows are multiplied at once, but neither on
  //     workers nor, among processes that all may use tiles, on the placement of replicas.
  //
  // bfloat16: for all products, some ten times as fast as the chain. Only the order of the sums
  // differs.
  kHigh,
};

// Sets the precision of all threads. Throws ValueError for a name other than "highest" and "high".
// The initial one is named by the environment variable KEEL_MATMUL_PRECISION; an unknown name there
// is a ValueError of the first GradientTape.
void set_matmul_precision(MatmulPrecision precision);
void set_matmul_precision(std::string_view name);
MatmulPrecision matmul_precision();

std::string_view name_of(MatmulPrecision precision);

}  // namespace keel
