// Float32 matrices converted to bfloat16 and laid out for tile registers (amx_tiles.h).
//
// An element is either rounded (kParts = 1) or split into kParts parts whose sum it is: the nearest
// bfloat16, then the bfloat16 nearest to the remainder, and so on. Three parts hold all 24 bits of
// a float that is not close to subnormal.
//
// A tile of the left factor has a row for each row of c, and pairs of neighbors in the direction of
// the sums. A tile of the right factor has a row for each pair and a lane for each column of c.
// Each is the other with its 32-bit lanes transposed, so matrices in either memory order serve as
// both factors. The tiles of the parts of the same elements follow each other.
#pragma once

#include <keel/framework/kernels/gemm/amx_tiles.h>

#if KEEL_AVX512

#include <algorithm>
#include <cstdint>
#include <immintrin.h>
#include <utility>

#include <keel/framework/kernels/gemm/bf16_pairs.h>

namespace keel::kernels::internal {
inline namespace KEEL_BF16_NAMESPACE {

// During the lifetime of an object, all eight tile registers of this thread have full size. They
// are zero at first. Without a session they are in their initial state, which the kernel need not
// save when it switches threads.
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

// A piece of a matrix whose rows are `step` apart.
struct Piece {
  const float* at;
  int64_t step, rows, columns;

  Piece from(int64_t row, int64_t column) const {
    return {at + row * step + column, step, rows - row, columns - column};
  }
};

inline __mmask16 mask_of(int64_t lanes) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(lanes, 0, kTileLanes)) - 1);
}

inline void store_row(uint32_t* to, Pairs row) { std::memcpy(to, &row, sizeof(row)); }

// Elements that become a row of pairs: neighbors in memory, in two consecutive vectors.
struct Adjacent {
  Vector first, second;

  Pairs pairs() const { return adjacent(first, second); }
  Adjacent without(Pairs taken) const {
    return {first - floats<0>(taken, kLanes), second - floats<kTileLanes>(taken, kLanes)};
  }
  // Loads the first `count` elements from `from` on; the others are zero.
  static Adjacent some(const float* from, int64_t count) {
    return {_mm512_maskz_loadu_ps(mask_of(count), from),
            _mm512_maskz_loadu_ps(mask_of(count - kTileLanes), from + kTileLanes)};
  }

 private:
  typedef uint16_t Halves __attribute__((vector_size(sizeof(Pairs))));
  static constexpr std::make_index_sequence<kTileLanes> kLanes = {};

  // Converts the elements from kFirst on to floats.
  template <size_t kFirst, size_t... kLane>
  static Vector floats(Pairs pairs, std::index_sequence<kLane...>) {
    const Halves all = reinterpret_cast<Halves>(pairs);
    const auto some = __builtin_shufflevector(all, all, (kFirst + kLane)...);
    return reinterpret_cast<Vector>(__builtin_convertvector(some, Pairs) << 16U);
  }
};

// Elements of two rows of a matrix that become a row of pairs, lane by lane.
struct Interleaved {
  Vector first, second;

  Pairs pairs() const { return interleaved(first, second); }
  Interleaved without(Pairs taken) const {
    return {first - reinterpret_cast<Vector>(taken << 16U),
            second - reinterpret_cast<Vector>(taken & 0xFFFF0000U)};
  }
};

// Stores the parts of row(0), row(1), ..., one tile per part, transposed if kTransposed.
template <int kParts, bool kTransposed, class Row>
void store_tiles(uint32_t* to, const Row& row) {
  decltype(row(0)) left[kTileRows];
#pragma GCC unroll 16
  for (int i = 0; i < kTileRows; ++i) left[i] = row(i);
#pragma GCC unroll 3
  for (int part = 0; part < kParts; ++part, to += kTileSize) {
    Vector rows[kTileRows];
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
      const Pairs pairs = left[i].pairs();
      if (part + 1 < kParts) left[i] = left[i].without(pairs);
      rows[i] = reinterpret_cast<Vector>(pairs);
    }
    if constexpr (kTransposed) exchange_blocks<1>(rows);
#pragma GCC unroll 16
    for (int i = 0; i < kTileRows; ++i) {
      store_row(to + i * kTileLanes, reinterpret_cast<Pairs>(rows[i]));
    }
  }
}

// Packs a tile whose row i has the pairs of neighbors in row i of the piece, with zeros after its
// end.
template <int kParts, bool kTransposed>
void pack_adjacent(const Piece& piece, uint32_t* to) {
  const float* const from = piece.at;
  const int64_t step = piece.step;
  if (piece.rows >= kTileRows && piece.columns >= kTileStep) {
    return store_tiles<kParts, kTransposed>(to, [=](int i) {
      return Adjacent{load(from + i * step), load(from + i * step + kTileLanes)};
    });
  }
  store_tiles<kParts, kTransposed>(to, [&](int i) {
    return Adjacent::some(from + i * step, i < piece.rows ? piece.columns : 0);
  });
}

// Packs a tile whose row i has, lane by lane, the pairs of rows 2 i and 2 i + 1 of the piece, with
// zeros after its end.
template <int kParts, bool kTransposed>
void pack_interleaved(const Piece& piece, uint32_t* to) {
  const float* const from = piece.at;
  const int64_t step = piece.step;
  if (piece.rows >= kTileStep && piece.columns >= kTileLanes) {
    return store_tiles<kParts, kTransposed>(to, [=](int i) {
      return Interleaved{load(from + 2 * i * step), load(from + (2 * i + 1) * step)};
    });
  }
  const __mmask16 lanes = mask_of(piece.columns);
  store_tiles<kParts, kTransposed>(to, [=, rows = piece.rows](int i) {
    const __mmask16 even = 2 * i < rows ? lanes : 0;
    const __mmask16 odd = 2 * i + 1 < rows ? lanes : 0;
    return Interleaved{_mm512_maskz_loadu_ps(even, from + 2 * i * step),
                       _mm512_maskz_loadu_ps(odd, from + (2 * i + 1) * step)};
  });
}

}  // namespace KEEL_BF16_NAMESPACE
}  // namespace keel::kernels::internal

#endif
