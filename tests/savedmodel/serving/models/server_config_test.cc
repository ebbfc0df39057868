// Tests savedmodel/serving/models/server_config.cc, version_folder.cc and version_policy.cc.
#include <keel/savedmodel/serving/models/server_config.h>

#include <filesystem>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/savedmodel/serving/models/version_folder.h>
#include <keel/savedmodel/serving/models/version_policy.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::serving::server_config_test {

using testing_support::message_of;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

std::vector<ModelConfig> models(const std::string& text) {
  std::vector<std::string> warnings;
  return parse_model_configs(text, "/etc/keel/models.config", warnings);
}

std::string refused(const std::string& text) {
  return message_of<ValueError>([&] { models(text); });
}

std::string refused_model(const std::string& fields) {
  return refused("model_config_list {\n config {\n" + fields + "\n }\n}");
}

// S-007, S-008
TEST(ServerConfigTest, ReadsEveryField) {
  std::vector<std::string> warnings;
  const auto all = parse_model_configs(
      R"(model_config_list {
           config { name: "a" base_path: "/models/a" model_platform: "keel"
                    model_version_policy { latest { num_versions: 2 } }
                    version_labels { key: "stable" value: 41 }
                    version_labels { key: "next" value: 42 }
                    logging_config { sampling_config { sampling_rate: 0.1 } } }
           config { name: "b" base_path: "b" model_version_policy { all {} } }
           config { name: "c" base_path: "x/c"
                    model_version_policy { specific { versions: 3 versions: 5 } } } })",
      "/etc/keel/models.config", warnings);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].policy, (VersionPolicy{.num_versions = 2}));
  EXPECT_EQ(all[0].labels, (std::map<std::string, int64_t>{{"next", 42}, {"stable", 41}}));
  EXPECT_EQ(all[1].base_path, "/etc/keel/b");
  EXPECT_EQ(all[1].policy.kind, VersionPolicy::Kind::kAll);
  EXPECT_EQ(all[2].policy.versions, (std::set<int64_t>{3, 5}));
  EXPECT_EQ(warnings.size(), 1U);
}

// S-007
TEST(ServerConfigTest, ErrorsNameLineAndField) {
  EXPECT_NE(refused_model("name: \"a\"\n colour: 1").find("line 4"), std::string::npos);
  EXPECT_NE(refused_model("colour: 1").find("colour"), std::string::npos);
  EXPECT_NE(refused_model("name: 7").find("line 3"), std::string::npos);
  EXPECT_NE(refused_model("name: \"a\" base_path: \"b\" model_type: \"x\"").find("model_type"),
            std::string::npos);
  EXPECT_NE(refused_model("name: \"a\" base_path: \"b\" model_platform: \"x\"").find("platform"),
            std::string::npos);
  EXPECT_NE(refused_model("name: \"a\"").find("base_path"), std::string::npos);
  EXPECT_NE(refused("custom_model_config {}").find("custom_model_config"), std::string::npos);
  for (const char* empty :
       {"", "# models\n", "model_config_list {}", "model_config_list { # none\n}"})
    EXPECT_NE(refused(empty).find("/etc/keel/models.config: no model"), std::string::npos) << empty;
  const std::string twice = "config { name: \"a\" base_path: \"b\" }";
  EXPECT_NE(refused("model_config_list {" + twice + twice + "}").find("twice"), std::string::npos);
}

// S-010
TEST(ServerConfigTest, ChecksNames) {
  for (const char* name : {"a", "a b", "a%+~", "\xC3\xA4", "..", "a\\\\b"})
    check_name("label", name);
  for (const std::string& name :
       {std::string(), std::string("a/b"), std::string("a:b"), std::string("a\nb"),
        std::string("\xFF"), std::string(256, 'a'), std::string("a\0b", 3)}) {
    EXPECT_THROW(check_name("label", name), ValueError) << name;
  }
}

// S-153
TEST(ServerConfigTest, ReadsTheMonitoringFile) {
  EXPECT_TRUE(parse_monitoring_config("prometheus_config { enable: true }", "f").enable);
  EXPECT_EQ(parse_monitoring_config("prometheus_config { enable: true path: \"/m\" }", "f").path,
            "/m");
  EXPECT_FALSE(parse_monitoring_config("prometheus_config { enable: false }", "f").enable);
  EXPECT_THROW(parse_monitoring_config("prometheus_config { path: \"m\" }", "f"), ValueError);
}

// S-183
TEST(ServerConfigTest, ReadsBatchingParameters) {
  const BatchingOptions all = parse_batching_parameters(
      R"(max_batch_size { value: 32 } batch_timeout_micros { value: 500 }
         num_batch_threads { value: 3 } max_enqueued_batches { value: 7 }
         enable_large_batch_splitting { value: true } max_execution_batch_size { value: 16 }
         allowed_batch_sizes: 8 allowed_batch_sizes: 16 pad_variable_length_inputs: true
         thread_pool_name { value: "p" })",
      "f", 2);
  EXPECT_EQ(all.max_batch_size, 32);
  EXPECT_EQ(all.batch_timeout_micros, 500);
  EXPECT_EQ(all.num_batch_threads, 3);
  EXPECT_EQ(all.max_enqueued_batches, 7);
  EXPECT_EQ(all.max_execution_batch_size, 16);
  EXPECT_EQ(parse_batching_parameters("", "f", 2).num_batch_threads, 2);
  for (const char* text :
       {"max_batch_size { value: 0 }", "batch_timeout_micros { value: -1 }", "colour: 1",
        "max_batch_size { value: 8 } max_execution_batch_size { value: 9 }",
        "max_batch_size { value: 8 } allowed_batch_sizes: 8 allowed_batch_sizes: 4",
        "max_batch_size { value: 8 } allowed_batch_sizes: 4",
        "enable_large_batch_splitting { value: false } max_execution_batch_size { value: 4 }"}) {
    EXPECT_THROW(parse_batching_parameters(text, "f", 2), ValueError) << text;
  }
}

// S-020
TEST(VersionFolderTest, FindsVersions) {
  const TemporaryFolder base;
  for (const char* name : {"0", "7", "007", "12", "9223372036854775807", "9223372036854775808",
                           "-1", "1a", ".5", "text"}) {
    std::filesystem::create_directories(base / name);
  }
  write_bytes(base / "99", "a file");
  std::vector<std::string> warnings;
  const auto found = list_versions(base.path(), warnings);
  ASSERT_TRUE(found);
  std::vector<int64_t> numbers;
  for (const auto& [number, folder] : *found) numbers.push_back(number);
  EXPECT_EQ(numbers, (std::vector<int64_t>{0, 7, 12, INT64_MAX}));
  EXPECT_EQ(found->at(7), base / "7");
  EXPECT_EQ(warnings.size(), 1U);
  EXPECT_FALSE(list_versions(base / "absent", warnings));
}

// S-021
TEST(VersionFolderTest, ChoosesTheModelFile) {
  const TemporaryFolder folder;
  const auto file = [&] { return model_file_in(folder.path()); };
  EXPECT_THROW(file(), IoError);
  write_bytes(folder / "a.weights.h5", "x");
  write_bytes(folder / "notes.txt", "x");
  EXPECT_THROW(file(), IoError);
  write_bytes(folder / "b.hdf5", "x");
  EXPECT_EQ(file(), "b.hdf5");
  write_bytes(folder / "c.keras", "x");
  const std::string error = message_of<IoError>([&] { file(); });
  EXPECT_NE(error.find("b.hdf5, c.keras"), std::string::npos) << error;
  write_bytes(folder / "model.hdf5", "x");
  EXPECT_EQ(file(), "model.hdf5");
  write_bytes(folder / "model.h5", "x");
  EXPECT_EQ(file(), "model.h5");
  write_bytes(folder / "model.keras", "x");
  EXPECT_EQ(file(), "model.keras");
}

constexpr VersionFacts kSeen = {.listed = true};
constexpr VersionFacts kFailed = {.listed = true, .failed = true};
constexpr VersionFacts kWaiting = {.listed = true, .waiting = true};
constexpr VersionFacts kGood = {.listed = true, .available = true};
constexpr VersionFacts kGone = {.available = true};
using Facts = std::map<int64_t, VersionFacts>;
using Numbers = std::set<int64_t>;

// S-022
TEST(VersionPolicyTest, AspiresToTheLatestAllOrSpecificVersions) {
  const Facts facts = {{1, kSeen}, {2, kSeen}, {3, kSeen}};
  const auto latest = [&](int64_t n) { return aspired_versions({.num_versions = n}, facts); };
  EXPECT_EQ(latest(1), (Numbers{3}));
  EXPECT_EQ(latest(2), (Numbers{2, 3}));
  EXPECT_EQ(latest(9), (Numbers{1, 2, 3}));
  EXPECT_EQ(aspired_versions({.kind = VersionPolicy::Kind::kAll}, facts), (Numbers{1, 2, 3}));
  EXPECT_EQ(aspired_versions({.kind = VersionPolicy::Kind::kSpecific, .versions = {2, 9}}, facts),
            (Numbers{2}));
}

// S-023, S-024
TEST(VersionPolicyTest, FallsBackFromVersionsThatFailed) {
  EXPECT_EQ(aspired_versions({}, {{1, kSeen}, {2, kFailed}, {3, kFailed}}), (Numbers{1}));
  EXPECT_EQ(aspired_versions({}, {{1, kSeen}, {2, kWaiting}}), (Numbers{1, 2}));
  EXPECT_EQ(aspired_versions({}, {{1, kGood}, {2, kWaiting}}), (Numbers{2}));
  EXPECT_EQ(aspired_versions({}, {{1, kFailed}}), Numbers());
}

// S-031
TEST(VersionPolicyTest, KeepsTheLastGoodVersion) {
  EXPECT_EQ(superseded_versions({2}, {{1, kGood}, {2, kSeen}}), Numbers());
  EXPECT_EQ(superseded_versions({2}, {{1, kGood}, {2, kGood}}), (Numbers{1}));
  EXPECT_EQ(superseded_versions({}, {{1, kGone}, {2, kGone}}), (Numbers{1}));
  EXPECT_EQ(superseded_versions({}, {{1, kGone}}), Numbers());
}

}  // namespace keel::serving::server_config_test
