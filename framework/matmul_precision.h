// MatmulPrecision: the precision of matrix products.
#pragma once

#include <string_view>

namespace keel {

// The precision of matrix products.
enum class MatmulPrecision {
  // "highest", the default. The bits are the same on every machine. Each element of a float32
  // product is one chain of fused multiply-adds. Products of bfloat16 operands (the policy
  // mixed_bfloat16) use the chain described in framework/kernels/gemm/gemm_bf16.h.
  kHighest,
  // "high". Products use the tile registers (AMX) of processors that have them, if Linux permits
  // the process to use them. Otherwise products are those of kHighest. The last bits therefore
  // depend on the processor.
  //
  // float32: tiles are used while a GradientTape of the thread is in use
  // (GradientTape::any_in_use), including for its gradients, and for matrices large enough to
  // benefit. Evaluation, prediction and serving stay at kHighest, so that the score of a row does
  // not depend on the machine that computes it. Each operand is split into the sum of three
  // bfloat16 numbers, and six of their nine products are computed, as XLA does on TPUs at its
  // highest precision (BF16_BF16_F32_X6). This is about 1.4 times as fast as multiply-adds. Each
  // omitted product is at most 2^-23 of a term. Sums are shorter, so the error is half that of
  // multiply-adds for operands of equal magnitude, and the same for others. Tiles have these
  // limits:
  // - subnormal numbers are treated as zero, and operands and products below 2^-102 lose digits;
  // - operands of 3.396e38 or more, including infinity, give NaN;
  // - a product just below the largest float may become infinite;
  // - x y^T and y x^T may differ in the last bits;
  // - the last bits of a row may depend on the number of rows multiplied at once, but neither on
  //   the number of workers nor, if all processes may use tiles, on the placement of replicas.
  //
  // bfloat16: tiles are used for all products, about ten times as fast as the chain. Only the order
  // of the sums differs.
  kHigh,
};

// Sets the precision of all threads. Throws ValueError for a name other than "highest" and "high".
// The environment variable KEEL_MATMUL_PRECISION sets the initial precision; if its value is
// unknown, the first GradientTape throws ValueError.
void set_matmul_precision(MatmulPrecision precision);
void set_matmul_precision(std::string_view name);
// Returns the current precision.
MatmulPrecision matmul_precision();

// Returns "highest" or "high".
std::string_view name_of(MatmulPrecision precision);

}  // namespace keel
