#include <keel/layers/ctr/ctr_schema.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace keel::ctr_schema_test {

namespace fs = std::filesystem;

// Creates a folder with these files for the running test.
fs::path folder_of(const std::map<std::string, std::string>& files) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const fs::path folder =
      testing::TempDir() + test->test_suite_name() + "." + test->name() + ".folder";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, text] : files) std::ofstream(folder / name, std::ios::binary) << text;
  return folder;
}

template <class Fn>
std::string message_of(Fn fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(CtrSchemaTest, ReadsCsvWithAHeader) {
  const fs::path folder = folder_of(
      {{"schema.json", R"({"label": "y", "numeric": ["x"], "categorical": ["c", "d"], "rows": 2})"},
       {"train.csv", "c,d,x,y\na,7,1.5,1\n,,,0\n"},
       {"test.csv", "y,x,c,d\n0,2,b,8\n"}});
  const CtrSchema schema = read_ctr_schema(folder);
  EXPECT_EQ(schema.integers, std::set<std::string>({"d"}));
  const CtrRows rows = read_ctr_csv(schema.train_file, schema);
  EXPECT_EQ(rows.labels.to_vector<float>(), std::vector<float>({1, 0}));
  EXPECT_EQ(rows.labels.shape(), Shape({2, 1}));
  EXPECT_EQ(rows.columns["x"].tensor().to_vector<float>(), std::vector<float>({1.5, 0}));
  EXPECT_EQ(rows.columns["c"].tensor().to_vector<std::string>(),
            std::vector<std::string>({"a", ""}));
  EXPECT_EQ(rows.columns["d"].tensor().to_vector<int64_t>(),
            std::vector<int64_t>({7, kNoCategory}));
}

// Label, integers and hexadecimal categories, separated by tabs and without a header line.
TEST(CtrSchemaTest, ReadsTheLayoutOfCriteosLogs) {
  const fs::path folder =
      folder_of({{"schema.json",
                  R"({"label": "label", "numeric": ["i1", "i2"], "categorical": ["c1", "c2"],
                      "delimiter": "\t", "columns": ["label", "i1", "i2", "c1", "c2"],
                      "train": "train.txt", "test": "test.txt"})"},
                 {"train.txt", "0\t1\t\t05db9164\t68fd1e64\n1\t\t-1\t\te5ba7672\n"},
                 {"test.txt", "1\t3\t4\t05db9164\t\n"}});
  const CtrSchema schema = read_ctr_schema(folder);
  EXPECT_EQ(schema.integers, std::set<std::string>({"i1", "i2"}));
  const CtrRows rows = read_ctr_csv(schema.train_file, schema);
  EXPECT_EQ(rows.labels.to_vector<float>(), std::vector<float>({0, 1}));
  EXPECT_EQ(rows.columns["i1"].tensor().to_vector<float>(), std::vector<float>({1, 0}));
  EXPECT_EQ(rows.columns["i2"].tensor().to_vector<float>(), std::vector<float>({0, -1}));
  EXPECT_EQ(rows.columns["c1"].tensor().to_vector<std::string>(),
            std::vector<std::string>({"05db9164", ""}));
  EXPECT_EQ(read_ctr_csv(schema.test_file, schema).labels.to_vector<float>(),
            std::vector<float>({1}));
}

TEST(CtrSchemaTest, MistakesAreErrorsThatNameTheKeyAndTheColumn) {
  const auto error = [](const std::string& json) {
    return message_of([&] { parse_ctr_schema(json, "s.json"); });
  };
  expect_contains(error("{"), "s.json");
  expect_contains(error(R"({"numeric": [], "categorical": ["c"]})"), "label");
  expect_contains(error(R"({"label": "y", "numeric": [], "categorical": []})"), "no features");
  expect_contains(error(R"({"label": "y", "numeric": ["x"], "categorical": ["x"]})"),
                  "column 'x' is listed twice");
  expect_contains(
      error(R"({"label": "y", "numeric": ["x"], "categorical": [], "delimiter": "ab"})"),
      "'delimiter' must be one character");
  expect_contains(error(R"({"label": "y", "numeric": ["x"], "categorical": [], "columns": ["x"]})"),
                  "column 'y' must be listed once in 'columns'");
}

TEST(CtrSchemaTest, LabelsOtherThan0And1AreErrors) {
  const fs::path folder = folder_of({{"a.csv", "y,x\n1,2\n0,3\n2,4\n"}});
  const CtrSchema schema = {.label = "y", .numeric = {"x"}};
  expect_contains(message_of([&] { read_ctr_csv(folder / "a.csv", schema); }),
                  "row 3: column 'y' must be 0 or 1, received 2");
}

CtrRows rows_of(int64_t count) {
  std::vector<float> numbers, labels;
  std::vector<int64_t> ids;
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(i));
    ids.push_back(i);
    texts.push_back(std::to_string(i));
    labels.push_back(static_cast<float>(i % 2));
  }
  return {.columns = {{"n", Tensor::from(numbers, {count})},
                      {"i", Tensor::from(ids, {count})},
                      {"t", Tensor::from(texts, {count})}},
          .labels = Tensor::from(labels, {count, 1})};
}

TEST(CtrSchemaTest, ASplitTakesEachRowOnceAndWhole) {
  const auto [train, held_out] = split_ctr_rows(rows_of(2000), 0.1, 5);
  std::vector<int64_t> all;
  for (const CtrRows* part : {&train, &held_out}) {
    const auto ids = part->columns["i"].tensor().to_vector<int64_t>();
    EXPECT_TRUE(std::ranges::is_sorted(ids));
    for (size_t row = 0; row < ids.size(); ++row) {
      EXPECT_EQ(part->columns["n"].tensor().to_vector<float>()[row], static_cast<float>(ids[row]));
      EXPECT_EQ(part->columns["t"].tensor().to_vector<std::string>()[row],
                std::to_string(ids[row]));
      EXPECT_EQ(part->labels.to_vector<float>()[row], static_cast<float>(ids[row] % 2));
    }
    all.insert(all.end(), ids.begin(), ids.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(all, rows_of(2000).columns["i"].tensor().to_vector<int64_t>());
  // Five standard deviations of a binomial distribution of 2000 draws.
  EXPECT_NEAR(static_cast<double>(held_out.labels.dim(0)), 200, 5 * std::sqrt(2000 * 0.1 * 0.9));
}

TEST(CtrSchemaTest, ASplitDependsOnTheRowsNumberAndTheSeedAlone) {
  const auto ids = [](int64_t rows, uint64_t seed) {
    return split_ctr_rows(rows_of(rows), 0.25, seed)
        .second.columns["i"]
        .tensor()
        .to_vector<int64_t>();
  };
  const std::vector<int64_t> fewer = ids(100, 1), more = ids(200, 1);
  EXPECT_TRUE(std::equal(fewer.begin(), fewer.end(), more.begin()));
  EXPECT_NE(ids(100, 2), fewer);
}

TEST(CtrSchemaTest, ASplitNeedsARowInBothParts) {
  EXPECT_THROW(split_ctr_rows(rows_of(10), 0, 1), ValueError);
  EXPECT_THROW(split_ctr_rows(rows_of(10), 1, 1), ValueError);
  expect_contains(message_of([] { split_ctr_rows(rows_of(1), 0.1, 1); }), "too few");
}

}  // namespace keel::ctr_schema_test
