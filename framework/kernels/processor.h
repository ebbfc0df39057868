// Properties of the processor that kernels use to choose a code path. They affect speed only, never
// results.
#pragma once

namespace keel::kernels {

// True if rows should be prefetched into the L2 cache instead of the L1 cache, because the L2 cache
// can have many more requests in flight. False until the program's static objects are constructed.
extern const bool kPrefetchesIntoL2;

// True if the hardware prefetcher does not follow loops that read with a long stride. False until
// the program's static objects are constructed.
extern const bool kMissesLongStrides;

// Returns whether the processor has the AVX512-BF16 instructions, which multiply pairs of bfloat16
// in vector registers, and the operating system saves these registers.
bool has_avx512_bf16();

}  // namespace keel::kernels
