#include "benchmarks/support/limits.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/amx_tiles.h>
#include <keel/framework/kernels/processor.h>

#include "benchmarks/support/pages.h"
#if KEEL_AVX512
#include <keel/framework/kernels/gemm/bf16_tiles.h>
#endif

namespace keel::bench {
namespace {

// The widest vector of the target. GCC and Clang compile the expression to multiply-adds (see
// CMakeLists.txt).
#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
using Vector __attribute__((vector_size(kVectorBytes))) = float;
using VectorInMemory __attribute__((vector_size(kVectorBytes), aligned(4), may_alias)) = float;
constexpr int kLanes = kVectorBytes / 4;

// Enough sums to hide the latency of an operation, and few enough for the registers.
constexpr int kSums = kVectorBytes == 64 ? 24 : 12;
constexpr int64_t kRounds = 200'000;  // a call is long enough to hide the start of threads

// Passed by value because a sum whose address is known stays in memory.
void keep(Vector value) { asm volatile("" : : "m"(value) : "memory"); }

// Use different values: the compiler would compute equal sums only once.
void make_unknown(Vector& value) { asm volatile("" : "+m"(value)); }

void multiply_add_block() {
  Vector sums[kSums] = {};
  for (Vector& sum : sums) make_unknown(sum);
  Vector factor = {};
  factor += 0.999F;
  Vector term = {};
  term += 1e-3F;
  make_unknown(factor);
  make_unknown(term);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) sums[i] = sums[i] * factor + term;
  }
  for (const Vector& sum : sums) keep(sum);
}

#if KEEL_AVX512
void bfloat16_dot_block() {
  __m512 sums[24] = {};
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
  __m512i ones = _mm512_set1_epi16(0x3f80);
  asm volatile("" : "+v"(ones));
  const auto a = reinterpret_cast<__m512bh>(ones);
  for (int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, a, a);
  }
  for (const __m512& sum : sums) asm volatile("" : : "m"(sum) : "memory");
}

// Four sums hide the latency of a product. The contents of the tiles do not change its time.
void bfloat16_tile_block() {
  const kernels::internal::TileSession session;
  for (int64_t round = 0; round < kRounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}
#endif

// Runs block() once on each thread, concurrently.
void on_threads(int threads, const std::function<void()>& block) {
  parallel_for(threads, 1, [&](int64_t, int64_t) { block(); });
}

double rate(double amount, const std::function<void()>& run) {
  const Comparison times = compare({{"limit", run}}, {.seconds_per_slice = 0.02, .turns = 9});
  return amount / times.timings[0].least * 1e-9;
}

constexpr int64_t kStreamFloats = 64'000'000;  // 256 MB

std::pair<int64_t, int64_t> part(int64_t n, int64_t thread, int64_t threads) {
  return {n * thread / threads, n * (thread + 1) / threads};
}

void read_block(const float* values, int64_t n) {
  Vector sums[8] = {};
  for (int64_t i = 0; i + 8 * kLanes <= n; i += 8 * kLanes) {
#pragma GCC unroll 8
    for (int v = 0; v < 8; ++v) {
      sums[v] += *reinterpret_cast<const VectorInMemory*>(values + i + v * kLanes);
    }
  }
  for (const Vector& sum : sums) keep(sum);
}

template <int kDim, bool kIntoL2>
void read_rows_block(const float* table, const int64_t* ids, int64_t n, int64_t ahead) {
  static_assert(kDim % kLanes == 0);
  constexpr int kVectors = kDim / kLanes;
  Vector sums[kVectors] = {};
  const auto prefetch = [&](int64_t i) {
    const char* row = reinterpret_cast<const char*>(table + ids[i] * kDim);
    for (int line = 0; line < kDim / 16; ++line)
      __builtin_prefetch(row + 64 * line, 0, kIntoL2 ? 2 : 3);
  };
  for (int64_t i = 0; i < std::min(ahead, n); ++i) prefetch(i);
  for (int64_t i = 0; i < n; ++i) {
    if (i + ahead < n) prefetch(i + ahead);
    const float* row = table + ids[i] * kDim;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sums[v] += *reinterpret_cast<const VectorInMemory*>(row + v * kLanes);
    }
  }
  for (const Vector& sum : sums) keep(sum);
}

using ReadBlock = void (*)(const float*, const int64_t*, int64_t, int64_t);

template <bool kIntoL2>
ReadBlock read_block_of(int64_t dim) {
  switch (dim) {
    case 16:
      return read_rows_block<16, kIntoL2>;
    case 32:
      return read_rows_block<32, kIntoL2>;
    case 64:
      return read_rows_block<64, kIntoL2>;
    case 128:
      return read_rows_block<128, kIntoL2>;
    default:
      throw ValueError("read_rows: dim must be 16, 32, 64 or 128, received ", dim);
  }
}

}  // namespace

PeakWork peak_work(int threads) {
  return {.contender = {"peak", [threads] { on_threads(threads, multiply_add_block); }},
          .flops = 2.0 * kRounds * kSums * kLanes * threads};
}

double peak_gflops(int threads) {
  const PeakWork work = peak_work(threads);
  return rate(work.flops, work.contender.run);
}

PeakWork peak_bfloat16_work([[maybe_unused]] int threads) {
#if KEEL_AVX512
  if (kernels::internal::may_use_tiles()) {
    return {.contender = {"peak", [threads] { on_threads(threads, bfloat16_tile_block); }},
            .flops = 2.0 * kRounds * 4 * kernels::internal::kTileSize *
                     kernels::internal::kTileStep * threads};
  }
  if (!kernels::has_avx512_bf16()) return {};
  return {.contender = {"peak", [threads] { on_threads(threads, bfloat16_dot_block); }},
          .flops = 4.0 * kRounds * 24 * 16 * threads};
#else
  return {};
#endif
}

double peak_bfloat16_gflops(int threads) {
  const PeakWork work = peak_bfloat16_work(threads);
  return work.flops == 0 ? 0 : rate(work.flops, work.contender.run);
}

double stream_read_gbps(int threads) {
  const PagedMemory memory(kStreamFloats * sizeof(float), Pages::kHuge);
  fill(memory.floats(), kStreamFloats, 1);
  return rate(kStreamFloats * sizeof(float), [&] {
    parallel_for(threads, 1, [&](int64_t thread, int64_t) {
      const auto [begin, end] = part(kStreamFloats, thread, threads);
      read_block(memory.floats() + begin, end - begin);
    });
  });
}

double stream_copy_gbps(int threads) {
  const PagedMemory memory(kStreamFloats * sizeof(float), Pages::kHuge);
  fill(memory.floats(), kStreamFloats, 1);
  constexpr int64_t kHalf = kStreamFloats / 2;
  return rate(kStreamFloats * sizeof(float), [&] {
    parallel_for(threads, 1, [&](int64_t thread, int64_t) {
      const auto [begin, end] = part(kHalf, thread, threads);
      std::memcpy(memory.floats() + kHalf + begin, memory.floats() + begin,
                  (end - begin) * sizeof(float));
    });
  });
}

void read_rows(const float* table, int64_t dim, const int64_t* ids, int64_t n, int threads,
               const RowDistance& distance) {
  const ReadBlock block = distance.into_l2 ? read_block_of<true>(dim) : read_block_of<false>(dim);
  if (threads == 1) return block(table, ids, n, distance.rows);
  parallel_for(threads, 1, [&](int64_t thread, int64_t) {
    const auto [begin, end] = part(n, thread, threads);
    block(table, ids + begin, end - begin, distance.rows);
  });
}

RowDistance best_distance(const float* table, int64_t dim, const std::vector<BagBatch>& batches,
                          int threads) {
  // A part of a batch determines the best distance as well as the whole batch.
  constexpr int64_t kIds = 50'000;
  std::vector<RowDistance> distances;
  for (const bool into_l2 : {false, true}) {
    for (const int64_t rows : {16, 32, 64, 128}) distances.push_back({rows, into_l2});
  }
  std::vector<Contender> contenders;
  size_t batch = 0;
  int64_t part_of_batch = 0;
  for (const RowDistance& distance : distances) {
    contenders.push_back({"", [&, distance] {
                            const auto& ids = batches[batch].ids;
                            const int64_t n = std::ssize(ids);
                            const int64_t parts = std::max<int64_t>(1, n / kIds);
                            const auto [first, end] = part(n, part_of_batch, parts);
                            read_rows(table, dim, ids.data() + first, end - first, threads,
                                      distance);
                            part_of_batch = (part_of_batch + 1) % parts;
                            if (part_of_batch == 0) batch = (batch + 1) % batches.size();
                          }});
  }
  const Comparison times = compare(std::move(contenders), {.seconds_per_slice = 2e-3, .turns = 5});
  size_t best = 0;
  for (size_t i = 1; i < distances.size(); ++i) {
    if (times.timings[i].least < times.timings[best].least) best = i;
  }
  return distances[best];
}

double gather_gbps(const float* table, int64_t rows, int64_t dim, int threads) {
  constexpr int64_t kIds = 400'000;
  Random random(1);
  std::vector<BagBatch> batches(10);
  for (BagBatch& batch : batches) {
    batch = make_bags(RowIds(rows, Popularity::kUniform), 1, kIds, /*ragged=*/false, random);
  }
  const RowDistance distance = best_distance(table, dim, batches, threads);
  size_t at = 0;
  return rate(static_cast<double>(kIds * dim) * sizeof(float), [&] {
    read_rows(table, dim, batches[at].ids.data(), kIds, threads, distance);
    at = (at + 1) % batches.size();
  });
}

}  // namespace keel::bench
