#include <keel/layers/embedding/v1/internal/lookup_statistics.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace keel::tpu::estimator_profile_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;

namespace fs = std::filesystem;

ProfileKey key() {
  return {.table_name = "tbl_a",
          .num_features = 2,
          .vocabulary_size = 100,
          .dimension = 4,
          .sharding_strategy = "div",
          .task_count = 4};
}

// All examples are sampled. Each looks up ids 0, 1 and 2, so the first ids are the frequent ones.
LookupProfiler profiler_of_low_ids(int64_t batches = 1) {
  LookupProfiler out({key()}, 1, {.sample_fraction = 1, .min_examples = 1});
  const std::vector<std::vector<int64_t>> rows(50, {0, 1, 2});
  for (int64_t i = 0; i < batches; ++i) out.record({{RaggedTensor::from_rows(rows)}}, 50);
  return out;
}

TEST(ProfileFileName, IsAStableHashOfTheKeyAlone) {
  // FNV-1a over the fields, computed with another program.
  EXPECT_EQ(profile_file_name(key()), "ab3fb0cb2979dea2.profile.json");
  EXPECT_EQ(profile_file_name(key()), profile_file_name(key()));
}

TEST(ProfileFileName, DiffersForEachFieldOfTheKey) {
  std::vector<ProfileKey> keys(7, key());
  keys[1].table_name = "tbl_b";
  keys[2].num_features = 3;
  keys[3].vocabulary_size = 101;
  keys[4].dimension = 8;
  keys[5].sharding_strategy = "mod";
  keys[6].task_count = 2;
  std::set<std::string> names;
  for (const ProfileKey& k : keys) names.insert(profile_file_name(k));
  EXPECT_EQ(names.size(), keys.size());
}

TEST(LookupProfiler, CountsIdsLoadsAndHotRows) {
  const TableProfile p = profiler_of_low_ids(2).profiles()[0];
  EXPECT_EQ(p.examples, 100);
  EXPECT_EQ(p.ids, 300);
  EXPECT_EQ(p.mean_ids_per_example(), 3);
  EXPECT_EQ(p.distinct_ids, 3);
  EXPECT_EQ(p.div_load, std::vector<int64_t>({300, 0, 0, 0}));
  EXPECT_EQ(p.mod_load, std::vector<int64_t>({100, 100, 100, 0}));
  EXPECT_EQ(p.div_imbalance(), 4);
  EXPECT_NEAR(p.mod_imbalance(), 4.0 / 3, 1e-12);
  ASSERT_EQ(p.hot_rows.size(), 3U);
  EXPECT_EQ(p.hot_rows[0].id, 0);
  EXPECT_EQ(p.hot_rows[0].count, 100);
}

TEST(LookupProfiler, SamplesThreePercentOfExamplesBySeedAndPosition) {
  const auto sampled = [](int64_t batch, uint64_t seed) {
    LookupProfiler profiler({key()}, 1, {.seed = seed});
    for (int64_t done = 0; done < 20'000; done += batch) {
      std::vector<std::vector<int64_t>> rows;
      for (int64_t row = 0; row < batch; ++row) rows.push_back({(done + row) % 100});
      profiler.record({{RaggedTensor::from_rows(rows)}}, batch);
    }
    return profiler.profiles()[0];
  };
  const TableProfile whole = sampled(20'000, 1), parts = sampled(100, 1), other = sampled(100, 2);
  EXPECT_NEAR(static_cast<double>(whole.examples), 600, 5 * std::sqrt(600.0));
  EXPECT_EQ(whole.examples, parts.examples);
  EXPECT_EQ(whole.div_load, parts.div_load);
  EXPECT_EQ(whole.examples_seen, 20'000);
  EXPECT_NE(whole.div_load, other.div_load);
}

TEST(LookupProfiler, AcceptsSparseAndDenseIds) {
  LookupProfiler profiler({key(), key()}, 1, {.sample_fraction = 1});
  const SparseTensor sparse = {.indices = Tensor::from<int64_t>({0, 0, 1, 1}, {2, 2}),
                               .values = Tensor::from<int64_t>({7, 99}, {2}),
                               .dense_shape = {2, 2}};
  profiler.record({{sparse}, {Tensor::from<int64_t>({5, 5}, {2})}}, 2);
  EXPECT_EQ(profiler.profiles()[0].ids, 2);
  EXPECT_EQ(profiler.profiles()[1].hot_rows[0].count, 2);
}

TEST(LookupProfiler, RejectsAFractionOutOfRange) {
  EXPECT_THROW(LookupProfiler({key()}, 1, {.sample_fraction = 0}), ValueError);
  EXPECT_THROW(LookupProfiler({key()}, 1, {.sample_fraction = 1.5}), ValueError);
}

TEST(LookupProfiler, SavesOnlyTablesWithEnoughSamples) {
  const TemporaryFolder temporary;
  const std::string folder = temporary / "profiles";
  LookupProfiler few({key()}, 1, {.sample_fraction = 1, .min_examples = 51});
  const std::vector<std::vector<int64_t>> rows(50, {0});
  few.record({{RaggedTensor::from_rows(rows)}}, 50);
  EXPECT_EQ(few.save(folder), 0);
  EXPECT_FALSE(read_profile(folder, key()));
  few.record({{RaggedTensor::from_rows(rows)}}, 50);
  EXPECT_EQ(few.save(folder), 1);
  EXPECT_TRUE(read_profile(folder, key()));
}

TEST(ProfileFiles, RoundTrip) {
  const TemporaryFolder temporary;
  const std::string folder = temporary / "profiles";
  profiler_of_low_ids().save(folder);
  const TableProfile p = read_profile(folder, key()).value();
  EXPECT_EQ(p.key, key());
  EXPECT_EQ(p.ids, 150);
  EXPECT_EQ(p.mod_load, std::vector<int64_t>({50, 50, 50, 0}));
  EXPECT_EQ(p.hot_rows.size(), 3U);
  EXPECT_EQ(read_profiles(folder).size(), 1U);
  // No temporary file remains.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(ProfileFiles, MissingProfilesAreNoError) {
  const TemporaryFolder temporary;
  const std::string folder = temporary / "profiles";
  EXPECT_FALSE(read_profile(folder, key()));
  profiler_of_low_ids().save(folder);
  ProfileKey other = key();
  other.table_name = "tbl_other";
  EXPECT_FALSE(read_profile(folder, other));
}

TEST(ProfileFiles, DamagedOrForeignOnesAreIoErrorsWithTheirPath) {
  const TemporaryFolder temporary;
  const std::string folder = temporary / "profiles";
  profiler_of_low_ids().save(folder);
  const std::string path = folder + "/" + profile_file_name(key());
  std::string text;
  std::getline(std::ifstream(path), text);
  const auto error_of = [&](const std::string& content) -> std::string {
    std::ofstream(path) << content;
    return message_of<IoError>([&] { read_profile(folder, key()); });
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    return out.replace(out.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), std::string("hello"), std::string("[]"), text.substr(0, text.size() / 2),
        replaced("keel-embedding-profile", "other"), replaced("tbl_a", "tbl_b"),
        replaced("\"ids\": 150", "\"ids\": 151"), replaced("\"ids\": 150", "\"ids\": -1"),
        replaced("\"mod_load\": [50, ", "\"mod_load\": [")}) {
    EXPECT_THAT(error_of(bad), HasSubstr(path)) << bad << ": " << error_of(bad);
  }
  EXPECT_THROW(read_profiles(folder), IoError);
  EXPECT_THROW(read_profiles(folder + "/none"), IoError);
}

TEST(ProfileFiles, SavingIntoAFileIsAnError) {
  const TemporaryFolder folder;
  const std::string file = folder / "is_a_file";
  std::ofstream(file) << "x";
  EXPECT_THROW(profiler_of_low_ids().save(file), IoError);
}

TEST(ChooseShardingStrategy, ChoosesTheMoreBalancedStrategy) {
  const TemporaryFolder temporary;
  const std::string folder = temporary / "profiles";
  EXPECT_EQ(choose_sharding_strategy(folder, {key()}, "div"), "div");
  profiler_of_low_ids().save(folder);
  EXPECT_EQ(choose_sharding_strategy(folder, {key()}, "div"), "mod");
  EXPECT_EQ(choose_sharding_strategy(folder, {key()}, "mod"), "mod");
}

TEST(ChooseShardingStrategy, KeepsTheRequestedStrategyOfATie) {
  const TemporaryFolder temporary;
  const std::string folder = temporary / "profiles";
  for (const std::string strategy : {"div", "mod"}) {
    ProfileKey k = key();
    k.sharding_strategy = strategy;
    LookupProfiler even({k}, 1, {.sample_fraction = 1, .min_examples = 1});
    even.record({{RaggedTensor::from_rows<int64_t>({{0, 33, 66, 99}})}}, 1);
    ASSERT_EQ(even.profiles()[0].div_imbalance(), 1);
    even.save(folder);
    EXPECT_EQ(choose_sharding_strategy(folder, {k}, strategy), strategy);
    fs::remove_all(folder);
  }
}

}  // namespace keel::tpu::estimator_profile_test
