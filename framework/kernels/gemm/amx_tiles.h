// Tile registers of processors that have AMX: whether this process may use them, and while it does.
//
// A tile is 16 rows of 16 pairs of bfloat16, or of 16 float: 1 KB.
#pragma once

// Builds for AVX-512 contain the code for tiles, whatever else the target's processor has: its
// sources are compiled for AMX and AVX512-BF16 (framework/CMakeLists.txt) and used where the
// processor and Linux allow.
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__linux__)
#define KEEL_AVX512 1
#else
#define KEEL_AVX512 0
#endif

namespace keel::kernels::internal {

inline constexpr int kTileRows = 16;
inline constexpr int kTileLanes = 16;  // floats, or pairs, of a row
inline constexpr int kTileSize = kTileRows * kTileLanes;
inline constexpr int kTileStep = 2 * kTileLanes;  // elements of a sum that one product adds
inline constexpr int kTileRowBytes = 64;

#if KEEL_AVX512

// Whether the processor has tiles and the kernel lets this process use them: asked once, for all
// threads, those that already run included. It refuses if a thread has an alternate signal stack
// that is too small for tiles (AT_MINSIGSTKSZ, some 12 KB), and once it has agreed it refuses such
// stacks (sigaltstack: ENOMEM).
bool may_use_tiles();

#else

inline bool may_use_tiles() { return false; }

#endif

}  // namespace keel::kernels::internal
