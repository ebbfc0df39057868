// Measures the limits of the machine: multiply-adds, memory streams, random rows. The results of
// all other programs are compared with these limits.
#include <algorithm>
#include <cstdint>
#include <thread>

#include <keel/framework/base/parallel.h>

#include "benchmarks/support/limits.h"
#include "benchmarks/support/pages.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

constexpr double kGiB = 1 << 30;

void add_arithmetic(Report& report, int threads) {
  report.add(
      {.op = "fma_float32", .threads = threads, .value = peak_gflops(threads), .unit = "GFLOP/s"});
  report.add({.op = "dot_bfloat16",
              .threads = threads,
              .value = peak_bfloat16_gflops(threads),
              .unit = "GFLOP/s"});
}

void add_streams(Report& report, int threads) {
  report.add({.op = "stream_read",
              .threads = threads,
              .value = stream_read_gbps(threads),
              .unit = "GB/s"});
  report.add({.op = "stream_copy",
              .threads = threads,
              .value = stream_copy_gbps(threads),
              .unit = "GB/s"});
}

// All tables use the same memory: a table is a prefix of it.
void add_gathers(Report& report, const Options& options, const std::vector<int>& threads) {
  const std::vector<double> sizes =
      options.quick ? std::vector{0.6, 2.4} : std::vector{0.6, 2.4, 4.0};
  for (const Pages pages : {Pages::kSmall, Pages::kHuge}) {
    const auto bytes = static_cast<int64_t>(sizes.back() * kGiB);
    const PagedMemory memory(bytes, pages);
    fill(memory.floats(), bytes / 4, 1);
    for (const double size : sizes) {
      for (const int64_t dim : {16, 64, 128}) {
        for (const int t : threads) {
          const int64_t rows = static_cast<int64_t>(size * kGiB) / (dim * 4);
          const double gbps = gather_gbps(memory.floats(), rows, dim, t);
          report.add({.op = "gather",
                      .dim = dim,
                      .threads = t,
                      .value = gbps,
                      .unit = "GB/s",
                      .more = {{"GiB", size}, {"ns_per_row", static_cast<double>(dim) * 4 / gbps}},
                      .labels = {{"pages", pages == Pages::kHuge ? "huge" : "4k"}}});
        }
      }
    }
  }
}

int run(const Options& options) {
  Report report(options, "bench_limits");
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  const int most = std::max(options.threads, processors);
  set_num_workers(most);
  std::vector<int> threads = {1};
  if (most > 1) threads.push_back(most);
  for (const int t : threads) {
    if (options.wants("arithmetic")) add_arithmetic(report, t);
    if (options.wants("stream")) add_streams(report, t);
  }
  if (options.wants("gather")) add_gathers(report, options, threads);
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  const auto options =
      keel::bench::parse_options(argc, argv, "bench_limits",
                                 "The limits of the machine: float32 and bfloat16 "
                                 "multiply-adds, streams, and random rows "
                                 "of 64, 256 and 512 bytes by table size and page size. For 1 "
                                 "thread and for as many as there are processors.\n"
                                 "Cases: arithmetic stream gather.");
  return keel::bench::run(options);
}
