// Tile registers of processors with AMX: their geometry, and permission to use them.
//
// A tile is 16 rows of 16 pairs of bfloat16, or of 16 floats: 1 KB.
#pragma once

// AVX-512 builds contain the code for tile registers regardless of the target processor. Its
// sources are compiled for AMX and AVX512-BF16 (framework/CMakeLists.txt) and used if the processor
// and Linux allow it.
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__linux__)
#define KEEL_AVX512 1
#else
#define KEEL_AVX512 0
#endif

namespace keel::kernels::internal {

inline constexpr int kTileRows = 16;
inline constexpr int kTileLanes = 16;  // floats, or pairs, per row
inline constexpr int kTileSize = kTileRows * kTileLanes;
inline constexpr int kTileStep = 2 * kTileLanes;  // terms that one tile product adds to a sum
inline constexpr int kTileRowBytes = 64;

#if KEEL_AVX512

// Returns whether the processor has tile registers and the kernel lets this process use them. The
// first call requests permission for all threads, including those that already run. The kernel
// refuses if a thread has an alternate signal stack that is too small for tiles (AT_MINSIGSTKSZ,
// about 12 KB). Once it has agreed, it refuses such stacks (sigaltstack: ENOMEM).
bool may_use_tiles();

#else

inline bool may_use_tiles() { return false; }

#endif

}  // namespace keel::kernels::internal
