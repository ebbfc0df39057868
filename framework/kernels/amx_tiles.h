// Tile registers of processors that have AMX: whether this process may use them, and while it does.
//
// A tile is 16 rows of 16 pairs of bfloat16, or of 16 float: 1 KB.
#pragma once

#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AVX512BF16__) && defined(__linux__)
#include <immintrin.h>
#define KEEL_AMX 1  // the target has them; the process may still be refused
#else
#define KEEL_AMX 0
#endif

namespace keel::kernels::internal {

inline constexpr int kTileRows = 16;
inline constexpr int kTileLanes = 16;  // floats, or pairs, of a row
inline constexpr int kTileSize = kTileRows * kTileLanes;
inline constexpr int kTileStep = 2 * kTileLanes;  // elements of a sum that one product adds
inline constexpr int kTileRowBytes = 64;

#if KEEL_AMX

// Whether the processor has tiles and the kernel lets this process use them: asked once, for all
// threads, those that already run included. It refuses if a thread has an alternate signal stack
// that is too small for tiles (AT_MINSIGSTKSZ, some 12 KB), and once it has agreed it refuses such
// stacks (sigaltstack: ENOMEM).
bool may_use_tiles();

// While alive, all eight tile registers of this thread are of full size, and zero.
// Without one they are in their initial state, which switches between threads need not save.
class TileSession {
 public:
  TileSession() {
    alignas(64) static constexpr struct {
      unsigned char palette = 1, start = 0, reserved[14] = {};
      unsigned short row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } kAllFull;
    _tile_loadconfig(&kAllFull);
  }
  ~TileSession() { _tile_release(); }
  TileSession(const TileSession&) = delete;
  TileSession& operator=(const TileSession&) = delete;
};

#else

inline bool may_use_tiles() { return false; }

#endif

}  // namespace keel::kernels::internal
