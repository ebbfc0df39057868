// libtorch's matrix products on the same memory as Keel's.
#pragma once

#include <cstdint>
#include <memory>

namespace keel::bench {

// Computes c[m, n] = op(a) . op(b), where a is [m, k], or [k, m] if transpose_a, and b is [k, n],
// or [n, k] if transpose_b. All matrices are row-major.
struct GemmShape {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;

  double flops() const { return 2.0 * static_cast<double>(m) * n * k; }
};

class GemmPeer {
 public:
  virtual ~GemmPeer() = default;
  // Sets the operands; call it before the first run(). `bias` [n] is added to every row unless it
  // is null.
  virtual void bind(const float* a, const float* b, const float* bias, float* c) = 0;
  virtual void run() = 0;    // at::mm_out or at::addmm_out
  virtual void store() = 0;  // copies the result of run() to c
};

// Returns null without libtorch. With `bfloat16`, operands and result are bfloat16; operands are
// rounded in bind(), because autocast receives most of them from other products.
std::unique_ptr<GemmPeer> make_gemm_peer(const GemmShape& shape, bool bfloat16 = false);

}  // namespace keel::bench
