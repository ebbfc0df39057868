#include "tests/conformance/dynamic_replay.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace keel::conformance::dynamic_replay_test {

const Config& dynamic_cases() {
  static const Config cases = [] {
    std::ifstream in(KEEL_SOURCE_DIR "/tests/cases/dynamic_cases.json");
    std::ostringstream text;
    text << in.rdbuf();
    return parse_json(text.str());
  }();
  return cases;
}

void expect_pass(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    bool found = false;
    for (const Config& item : dynamic_cases().items()) {
      if (item["name"].string() != name) continue;
      found = true;
      EXPECT_EQ(replay_dynamic_case(item), "") << name;
    }
    EXPECT_TRUE(found) << name;
  }
}

TEST(DynamicReplayTest, D010FirstLookups) {
  expect_pass({"always_constant", "always_row_id_mean_weights", "always_row_id_sqrtn"});
}
TEST(DynamicReplayTest, D011SharedTablesAndSeveralTables) {
  expect_pass({"shared_table", "two_tables"});
}
TEST(DynamicReplayTest, D012Sequences) { expect_pass({"sequence_feature", "ignore_sequence"}); }
TEST(DynamicReplayTest, D013EvaluationHasNoSideEffects) {
  expect_pass({"evaluation_leaves_no_trace"});
}
TEST(DynamicReplayTest, D014ALookupWithoutUpdateHasNoEffect) {
  expect_pass({"lookup_without_update"});
}
TEST(DynamicReplayTest, D015StepsWithoutIds) { expect_pass({"empty_batches"}); }
TEST(DynamicReplayTest, D020CountAdmission) {
  expect_pass({"count_two_not_within_a_step", "count_three_zero"});
}
TEST(DynamicReplayTest, D021Ignore) { expect_pass({"count_three_ignore"}); }
TEST(DynamicReplayTest, D022DefaultRow) { expect_pass({"default_row_trains", "default_row_adam"}); }
TEST(DynamicReplayTest, D023HashedFallback) {
  expect_pass({"hashed_fallback", "string_keys_hashed"});
}
TEST(DynamicReplayTest, D024PendingWindowAndBound) {
  expect_pass({"pending_window", "max_pending", "window_and_max_pending"});
}
TEST(DynamicReplayTest, D025Sketch) {
  expect_pass({"sketch", "sketch_four_cells", "sketch_collisions", "sketch_halving"});
}
TEST(DynamicReplayTest, D030Lru) {
  expect_pass({"lru", "lru_headroom", "lru_ties", "capacity_one"});
}
TEST(DynamicReplayTest, D031Lfu) { expect_pass({"lfu", "lfu_halving", "lfu_evicts_new_id"}); }
TEST(DynamicReplayTest, D032BatchBeyondCapacity) { expect_pass({"batch_larger_than_capacity"}); }
TEST(DynamicReplayTest, D033Ttl) { expect_pass({"ttl_exact", "ttl_interval"}); }
TEST(DynamicReplayTest, D034TtlWithCapacity) {
  expect_pass({"ttl_and_lru", "ttl_before_capacity", "ttl_and_lfu_count_two"});
}
TEST(DynamicReplayTest, D035UserClock) { expect_pass({"user_clock"}); }
TEST(DynamicReplayTest, D036Norm) { expect_pass({"min_l2_norm", "norm_and_lfu"}); }
TEST(DynamicReplayTest, D037Refusal) {
  expect_pass({"refuse", "refuse_keeps_pending_counts", "refuse_default_row"});
}
TEST(DynamicReplayTest, D038ErrorWhenFull) {
  expect_pass({"error_when_full", "error_leaves_other_tables"});
}
TEST(DynamicReplayTest, D040ReuseResetsSlots) {
  expect_pass({"readmission_adam", "readmission_adagrad", "readmission_count_three"});
}
TEST(DynamicReplayTest, D042OptimizerOptions) {
  expect_pass(
      {"ftrl", "adagrad_momentum", "clips_and_decay", "without_accumulation", "dynamic_rate"});
}
TEST(DynamicReplayTest, D043DenseUpdates) {
  expect_pass({"adam_all_rows", "keras_adam_all_rows", "keras_adagrad"});
}
TEST(DynamicReplayTest, D050Keys) { expect_pass({"extreme_keys", "string_keys"}); }
TEST(DynamicReplayTest, D070PipelinedExecution) {
  expect_pass({"pipelined", "pipelined_count_two", "pipelined_eviction", "pipelined_refuse"});
}
TEST(DynamicReplayTest, D082PruneEraseAssign) {
  expect_pass({"prune", "prune_norm", "erase", "assign_rows"});
}
TEST(DynamicReplayTest, D090SaveAndRestore) { expect_pass({"save_restore_continue"}); }
TEST(DynamicReplayTest, D092ChangedConfiguration) { expect_pass({"restore_smaller_capacity"}); }
TEST(DynamicReplayTest, D101MinCount) { expect_pass({"export_min_count"}); }
TEST(DynamicReplayTest, LongMixedCases) { expect_pass({"mixed_long_a", "mixed_long_b"}); }

}  // namespace keel::conformance::dynamic_replay_test
