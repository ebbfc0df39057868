#include "tests/conformance/embedding_replay.h"

#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace keel::conformance::embedding_replay_test {

using testing::HasSubstr;

Config reference_cases() {
  std::ifstream in(KEEL_SOURCE_DIR "/tests/cases/embedding_cases.json");
  std::ostringstream text;
  text << in.rdbuf();
  return parse_json(text.str());
}

Config case_named(const std::string& name) {
  const Config cases = reference_cases();
  for (const Config& item : cases.items()) {
    if (item["name"].string() == name) return item;
  }
  throw ValueError("no case '", name, "'");
}

// Returns the case with one input replaced, or removed if the value is null.
Config with_input(Config item, const std::string& key, const Config& value) {
  Config inputs = item["inputs"];
  if (value.is_null()) {
    inputs.erase(key);
  } else {
    inputs.set(key, value);
  }
  item.set("inputs", inputs);
  return item;
}

void expect_failure(const Config& item, const std::string& part) {
  const std::string text = replay_embedding_case(item);
  EXPECT_THAT(text, HasSubstr(part)) << "'" << text << "' lacks '" << part << "'";
}

// Within the tolerances of the cases; D007StaticTablesKeepTheirBitsBesideADynamicOne compares bits.
TEST(EmbeddingReplayTest, D007TheReferenceCasesPass) {
  const Config cases = reference_cases();
  EXPECT_EQ(cases.items().size(), 52U);
  for (const Config& item : cases.items()) {
    EXPECT_EQ(replay_embedding_case(item), "") << item["name"].string();
  }
}

TEST(EmbeddingReplayTest, FieldsWithDefaultsMayBeMissing) {
  Config item = case_named("host_sparse_mean");
  for (const char* key : {"combiner", "weights", "validate", "rtol", "atol"}) {
    item = with_input(item, key, Config());
  }
  EXPECT_EQ(replay_embedding_case(item), "");
}

TEST(EmbeddingReplayTest, UnknownFieldsAreFailuresThatNameThem) {
  const Config item = case_named("host_sparse_mean");
  expect_failure(with_input(item, "kind", "dens"), "unknown kind 'dens'");
  expect_failure(with_input(item, "mode", "gpu"), "unknown mode 'gpu'");
  expect_failure(with_input(item, "temperature", 1), "'temperature'");
  const Config training = case_named("train4_adagrad");
  expect_failure(with_input(training, "optimizer", Config::dict({{"type", "lamb"}})), "'lamb'");
  expect_failure(with_input(training, "optimizer",
                            Config::dict({{"type", "adagrad"}, {"initial_acumulator_value", 1}})),
                 "initial_acumulator_value");
  expect_failure(with_input(training, "optimizer",
                            Config::dict({{"type", "momentum"}, {"momentum", 1}, {"rho", 1}})),
                 "rho");
}

TEST(EmbeddingReplayTest, AnUnknownSlotIsAFailureThatNamesIt) {
  Config item = case_named("train4_adagrad");
  const Config table = item["expected"]["per_step"].items()[0]["table"];
  const Config step = Config::dict({{"table", table}, {"slots", Config::dict({{"heaps", table}})}});
  item.set("expected", Config::dict({{"per_step", Config::list({step, step, step, step})}}));
  expect_failure(item, "'heaps'");
}

TEST(EmbeddingReplayTest, MissingFieldsAreFailuresThatNameThem) {
  const Config item = case_named("host_sparse_mean");
  for (const char* key : {"kind", "table", "values", "indices", "dense_shape"}) {
    expect_failure(with_input(item, key, Config()), std::string("'") + key + "'");
  }
  Config nothing = item;
  nothing.set("expected", Config::dict());
  expect_failure(nothing, "'output'");
}

TEST(EmbeddingReplayTest, ValuesOfAWrongKindAreFailures) {
  const Config item = case_named("host_sparse_mean");
  for (const char* key : {"table", "values", "indices", "dense_shape", "combiner", "rtol"}) {
    EXPECT_NE(replay_embedding_case(with_input(item, key, Config::dict())), "") << key;
  }
  EXPECT_NE(replay_embedding_case(with_input(item, "table", Config::list({1, 2}))), "");
  EXPECT_NE(replay_embedding_case(with_input(item, "values", Config::list({1}))), "");
}

TEST(EmbeddingReplayTest, DifferencesNameTheElementWithExpectedAndGot) {
  Config item = case_named("ragged_mean");
  Config output = Config::list({});
  for (const Config& row : item["expected"]["output"].items()) output.push_back(row);
  output.push_back(Config::list({0, 0, 0}));
  item.set("expected", Config::dict({{"output", output}}));
  expect_failure(item, "expected shape (6, 3), got shape (5, 3)");
  const Config quantized =
      with_input(case_named("quantized_lookup_mean"), "quantization", Config());
  expect_failure(quantized, "output[0][0]: expected 0.333333333, got 0.45");
}

TEST(EmbeddingReplayTest, ErrorsOfTheLibraryAreFailures) {
  expect_failure(with_input(case_named("ragged_mean"), "combiner", "median"), "median");
  expect_failure(with_input(case_named("partition_4_rows_7_hosts"), "num_hosts", 0), "error");
}

}  // namespace keel::conformance::embedding_replay_test
