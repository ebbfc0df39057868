#include "tests/conformance/golden_replay.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/conformance/known_classes.h"
#include "tests/conformance/replay_program.h"
#include "tests/support/files.h"

namespace keel::conformance::golden_replay_test {

using testing::HasSubstr;
using testing_support::read_bytes;

Config golden_file() { return read_json_file(KEEL_SOURCE_DIR "/tests/cases/keras_golden.json"); }

class GoldenSectionTest : public testing::TestWithParam<std::string> {};

TEST_P(GoldenSectionTest, MatchesKeras) {
  size_t count = 0;
  for (const GoldenRecord& record : golden_records(golden_file())) {
    if (record.section != GetParam()) continue;
    ++count;
    EXPECT_EQ(replay_golden_record(record), "") << record.name();
  }
  EXPECT_GT(count, 0U);
}

std::vector<std::string> sections() {
  std::vector<std::string> out;
  for (const auto& [section, names] : known_classes()) out.push_back(section);
  return out;
}

INSTANTIATE_TEST_SUITE_P(AllSections, GoldenSectionTest, testing::ValuesIn(sections()),
                         [](const auto& one) { return one.param; });

// Removes the names of classes from calls of expect_layer_contract(), which creates every layer
// from a config without checking numbers.
std::string without_contracts(std::string text) {
  constexpr std::string_view kName = ".class_name = \"";
  for (size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at)) {
    text.erase(at, text.find('"', at + kName.size()) - at);
  }
  return text;
}

// Returns the text of all tests.
std::string all_tests() {
  std::string out;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(KEEL_SOURCE_DIR "/tests")) {
    const std::string path = entry.path().string();
    if (path.ends_with("_test.cc")) out += without_contracts(read_bytes(path));
  }
  return out;
}

using Words = std::set<std::string, std::less<>>;

Words words_of(const std::string& text) {
  Words out;
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t begin = i;
    while (i < text.size() && in_word(text[i])) ++i;
    if (i > begin) out.insert(text.substr(begin, i - begin));
  }
  return out;
}

// Returns true if the words contain the name, or the name of its implementation or options.
bool uses(const Words& words, const std::string& name) {
  return words.contains(name) || words.contains(name + "Layer") || words.contains(name + "Options");
}

TEST(GoldenReplayTest, EveryClassHasARecordOrATest) {
  std::set<std::pair<std::string, std::string>> recorded;
  for (const GoldenRecord& record : golden_records(golden_file())) {
    recorded.emplace(record.section, record.class_name());
  }
  const Words tests = words_of(all_tests());
  for (const auto& [section, names] : known_classes()) {
    for (const std::string& name : names) {
      EXPECT_TRUE(recorded.contains({section, name}) || uses(tests, name))
          << section << " " << name << ": neither keras_golden.json nor any test uses it";
    }
  }
}

TEST(GoldenReplayTest, UntestedClassesAreFound) {
  EXPECT_FALSE(uses(words_of(all_tests()), std::string("Nobody") + "TestsThis"));
}

GoldenRecord record_of(const std::string& section, const std::string& class_name) {
  for (const GoldenRecord& record : golden_records(golden_file())) {
    if (record.section == section && record.class_name() == class_name) return record;
  }
  throw ValueError("no record of ", class_name);
}

void expect_failure(const GoldenRecord& record, const std::string& part) {
  const std::string text = replay_golden_record(record);
  EXPECT_THAT(text, HasSubstr(part)) << "'" << text << "' lacks '" << part << "'";
}

TEST(GoldenReplayTest, UnknownFieldsAreFailuresThatNameThem) {
  GoldenRecord record = record_of("layers", "Dense");
  record.fields.set("class", "Dens");
  expect_failure(record, "'Dens'");
  record = record_of("layers", "Dense");
  record.fields.set("temperature", 1);
  expect_failure(record, "'temperature'");
  record = record_of("layers", "Dense");
  record.fields.set("call_kwargs", Config::dict({{"speed", 1}}));
  expect_failure(record, "'speed'");
  record.section = "gadgets";
  expect_failure(record, "unknown section 'gadgets'");
}

TEST(GoldenReplayTest, MissingFieldsAreFailuresThatNameThem) {
  for (const char* key : {"class", "config", "inputs", "weights", "output"}) {
    GoldenRecord record = record_of("layers", "Dense");
    record.fields.erase(key);
    expect_failure(record, std::string("'") + key + "'");
  }
  GoldenRecord record = record_of("optimizers", "SGD");
  record.optimizer_problem = {};
  expect_failure(record, "optimizer_problem");
}

// Returns the record with 1 added to the first number of an array.
GoldenRecord shifted(GoldenRecord record, const std::string& key) {
  Config array = record.fields[key];
  Config::List data = array["data"].items();
  data.at(0) = data.at(0).number() + 1;
  array.set("data", data);
  record.fields.set(key, array);
  return record;
}

TEST(GoldenReplayTest, DifferencesNameTheElementWithExpectedAndGot) {
  expect_failure(shifted(record_of("layers", "Dense"), "output"), "output[0][0]: expected ");
  expect_failure(shifted(record_of("activations", "tanh"), "grad_x"), "gradient of x[0]");
  expect_failure(shifted(record_of("regularizers", "L2"), "value"), "value: expected ");
  expect_failure(shifted(record_of("constraints", "NonNeg"), "result"), "result[0][0]");
}

TEST(GoldenReplayTest, MalformedArraysAreFailures) {
  GoldenRecord record = record_of("constraints", "NonNeg");
  record.fields.set("w", Config::dict({{"shape", Config::list({2})}, {"data", Config::list({1})}}));
  expect_failure(record, "has 1 values");
  record.fields.set("w", 3);
  expect_failure(record, "must have the lists");
}

TEST(GoldenReplayTest, NamesOfRecordsContainPositionAndConfig) {
  const GoldenRecord record = {
      .section = "layers", .index = 7, .fields = parse_json(R"({"class": "Add", "tag": "wide",
                                                        "config": {"name": "add"}})")};
  EXPECT_EQ(record.name(), R"(layers[7] Add [wide] {"name": "add"})");
}

TEST(GoldenReplayTest, FilesWithoutRecordsAreRejected) {
  EXPECT_THROW(golden_records(Config::list({})), ValueError);
  EXPECT_THROW(golden_records(Config::dict()), ValueError);
  EXPECT_THROW(golden_records(Config::dict({{"layers", 3}})), ValueError);
  EXPECT_EQ(golden_records(Config::dict({{"meta", 3}, {"losses", Config::list({1})}})).size(), 1U);
}

}  // namespace keel::conformance::golden_replay_test
