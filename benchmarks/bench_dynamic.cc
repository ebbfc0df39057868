// Compares tables for unbounded ids with static tables and with a hash map of the peer Abseil. All
// values are ratios measured in one run; which direction is better, and what is expected, is stated
// beside each in docs/performance.md.
//
//   find, insert  batches of int64 ids, one core: speed over absl::flat_hash_map<int64_t, uint32_t>
//                 "insert, two cores over one": admission of new ids of two replicas, as in an
//                 engine
//   bytes         of a row beyond its weights and slots, at load 0.8 of the index
//   step          a training step of DLRM: time over that with static tables
//   growth        the longest step over the median while a table grows
//   checkpoint    time to write and to restore, over a static table of the same bytes
//   serve         the serving plan of DLRM: time of a call over that with static tables
//   2 ranks       speed of two MPI ranks over one, over the same for static tables
#include "benchmarks/dynamic/key_index_speed.h"
#include "benchmarks/dynamic/rank_speed.h"
#include "benchmarks/dynamic/serving_speed.h"
#include "benchmarks/dynamic/step_speed.h"
#include "benchmarks/support/report.h"

int main(int argc, char** argv) {
  using namespace keel::bench;
  if (const std::optional<int> code = measure_as_rank()) return *code;
  const Options options =
      parse_options(argc, argv, "bench_dynamic", "tables for unbounded ids over static tables");
  Report report(options, "bench_dynamic");
  measure_key_index(options, report);
  measure_steps(options, report);
  measure_growth(options, report);
  measure_checkpoints(options, report);
  measure_serving(options, report);
  measure_ranks(options, report);
  return report.finish();
}
