#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"

namespace keel::ctr_schema_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using testing_support::write_bytes;

namespace fs = std::filesystem;

class CtrSchemaTest : public testing::Test {
 protected:
  // Writes the files into the folder of the test and returns it.
  fs::path folder_of(const std::map<std::string, std::string>& files) const {
    for (const auto& [name, text] : files) write_bytes(folder_ / name, text);
    return folder_.path();
  }

 private:
  const TemporaryFolder folder_;
};

TEST_F(CtrSchemaTest, ReadsCsvWithAHeader) {
  const fs::path folder =
      folder_of({{"schema.json",
                  R"({"label": "y", "numeric": ["x"], "categorical": ["c", "d"], "rows_test": 1})"},
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

// -1 and -9223372036854775807 are categories like all others.
TEST_F(CtrSchemaTest, AnEmptyFieldDiffersFromEachInteger) {
  const fs::path folder = folder_of(
      {{"schema.json", R"({"label": "y", "numeric": [], "categorical": ["c", "d"]})"},
       {"train.csv", "y,c,d\n1,-1,1\n0,,2\n1,-9223372036854775807,-9223372036854775808\n"},
       {"test.csv", "y,c,d\n0,0,\n"}});
  const CtrSchema schema = read_ctr_schema(folder);
  // The number of an empty field makes the column a column of strings.
  EXPECT_EQ(schema.integers, std::set<std::string>({"c"}));
  const CtrRows rows = read_ctr_csv(schema.train_file, schema);
  const auto c = rows.columns["c"].tensor().to_vector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(c.begin(), c.end()).size(), 3U);
  EXPECT_EQ(c[0], -1);
  EXPECT_EQ(c[2], -9223372036854775807);
  const CtrFeatures features(schema, rows.columns);
  const auto ids = features(rows.columns)["ids"]["c"].tensor().to_vector<int64_t>();
  EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), 3U);
  EXPECT_EQ(std::ranges::count(ids, 0), 0);  // 0 is the id of unknown categories
}

TEST_F(CtrSchemaTest, QuotesAreReadAsTheSchemaTells) {
  const std::string rows = "y\tc\n1\t\"a\n0\t\"b\"\n";
  const auto read = [&](const std::string& keys) {
    const fs::path folder = folder_of(
        {{"schema.json",
          R"({"label": "y", "numeric": [], "categorical": ["c"], "delimiter": "\t")" + keys + "}"},
         {"train.csv", rows},
         {"test.csv", rows}});
    const CtrSchema schema = read_ctr_schema(folder);
    return read_ctr_csv(schema.train_file, schema).columns["c"].tensor().to_vector<std::string>();
  };
  EXPECT_EQ(read(""), (std::vector<std::string>{"\"a", "\"b\""}));
  EXPECT_EQ(read(R"(, "quoting": false)"), (std::vector<std::string>{"\"a", "\"b\""}));
  EXPECT_THROW(read(R"(, "quoting": true)"), IoError);
  EXPECT_THAT(message_of<IoError>([&] { read(R"(, "quoting": true, "max_quoted_lines": 1)"); }),
              HasSubstr("begins on line 2 spans more than 1 lines"));
}

// Label, integers and hexadecimal categories, separated by tabs and without a header line.
TEST_F(CtrSchemaTest, ReadsTheLayoutOfCriteosLogs) {
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

TEST_F(CtrSchemaTest, InvalidSchemasAreErrorsThatNameKeyAndColumn) {
  const auto error = [](const std::string& json) {
    return message_of([&] { parse_ctr_schema(json, "s.json"); });
  };
  EXPECT_THAT(error("{"), HasSubstr("s.json"));
  EXPECT_THAT(error(R"({"numeric": [], "categorical": ["c"]})"), HasSubstr("label"));
  EXPECT_THAT(error(R"({"label": "y", "numeric": [], "categorical": []})"),
              HasSubstr("no features"));
  EXPECT_THAT(error(R"({"label": "y", "numeric": ["x"], "categorical": ["x"]})"),
              HasSubstr("column 'x' is listed twice"));
  EXPECT_THAT(error(R"({"label": "y", "numeric": ["x"], "categorical": [], "delimiter": "ab"})"),
              HasSubstr("'delimiter' must be one character"));
  EXPECT_THAT(error(R"({"label": "y", "numeric": ["x"], "categorical": [], "delimeter": "\t"})"),
              HasSubstr("s.json: unknown key 'delimeter'; the known keys are label, numeric, "
                        "categorical, delimiter, columns, train, test, quoting, max_quoted_lines"));
  EXPECT_THAT(error(R"({"label": "y", "numeric": ["x", ""], "categorical": []})"),
              HasSubstr("a column has no name"));
  EXPECT_THAT(error(R"({"label": "", "numeric": ["x"], "categorical": []})"),
              HasSubstr("a column has no name"));
  EXPECT_THAT(
      error(R"({"label": "y", "numeric": ["x"], "categorical": [], "max_quoted_lines": 0})"),
      HasSubstr("'max_quoted_lines' must be at least 1"));
  EXPECT_THAT(error(R"({"label": "y", "numeric": ["x"], "categorical": [], "columns": ["x"]})"),
              HasSubstr("column 'y' must be listed once in 'columns'"));
}

TEST_F(CtrSchemaTest, LabelsOtherThan0And1AreErrors) {
  const fs::path folder = folder_of({{"a.csv", "y,x\n1,2\n0,3\n2,4\n"}});
  const CtrSchema schema = {.label = "y", .numeric = {"x"}};
  EXPECT_THAT(message_of([&] { read_ctr_csv(folder / "a.csv", schema); }),
              HasSubstr("row 3: column 'y' must be 0 or 1, received 2"));
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

TEST_F(CtrSchemaTest, ASplitUsesEachRowOnce) {
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

TEST_F(CtrSchemaTest, ASplitDependsOnRowNumberAndSeedOnly) {
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

TEST_F(CtrSchemaTest, ASplitNeedsARowInBothParts) {
  EXPECT_THROW(split_ctr_rows(rows_of(10), 0, 1), ValueError);
  EXPECT_THROW(split_ctr_rows(rows_of(10), 1, 1), ValueError);
  EXPECT_THAT(message_of([] { split_ctr_rows(rows_of(1), 0.1, 1); }), HasSubstr("too few"));
}

}  // namespace keel::ctr_schema_test
