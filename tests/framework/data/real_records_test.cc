// Reads files written by other programs, if they are available: tables in $KEEL_DATA_DIR and record
// files in ../interop beside it.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/tfrecord.h>

namespace keel::data::real_records_test {

using testing::HasSubstr;

namespace fs = std::filesystem;

fs::path data_folder() {
  const char* const folder = std::getenv("KEEL_DATA_DIR");
  return folder != nullptr ? fs::path(folder) : fs::path(KEEL_SOURCE_DIR) / "../shared/data";
}
fs::path interop_folder() { return data_folder() / "../interop"; }

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& file : fs::directory_iterator(folder)) out.push_back(file.path());
  std::ranges::sort(out);
  return out;
}

const std::vector<std::string> kFloats = {"dropoff_latitude", "dropoff_longitude", "fare",
                                          "pickup_latitude",  "pickup_longitude",  "trip_miles"};
const std::vector<std::string> kIntegers = {"dropoff_census_tract", "dropoff_community_area",
                                            "pickup_census_tract",  "pickup_community_area",
                                            "trip_seconds",         "trip_start_day",
                                            "trip_start_hour",      "trip_start_month"};
const std::vector<std::string> kStrings = {"company", "payment_type"};

constexpr float kNoFloat = -1e30F;
constexpr int64_t kNoInteger = std::numeric_limits<int64_t>::min() / 2;

// Returns the rows of a batch as texts, with the number of occurrences of each.
using Rows = std::map<std::string, int>;

void add_rows(const Tensors& batch, Rows& rows) {
  const int64_t count = row_count(batch);
  std::vector<std::ostringstream> texts(static_cast<size_t>(count));
  for (std::ostringstream& text : texts) text.precision(9);
  for (const auto& [name, column] : batch.entries()) {
    visit_any(column.tensor().dtype(), [&, values = column.tensor()]<class T>(const T&) {
      for (int64_t i = 0; i < count; ++i) texts[i] << values.template data<T>()[i] << ';';
    });
  }
  for (const std::ostringstream& text : texts) ++rows[text.str()];
}

FeatureSpecs taxi_specs() {
  FeatureSpecs out;
  for (const std::string& name : kFloats) {
    out[name] = FixedLenFeature{.default_value = Tensor::scalar<float>(kNoFloat)};
  }
  for (const std::string& name : kIntegers) {
    out[name] = FixedLenFeature{.dtype = DType::kInt64,
                                .default_value = Tensor::scalar<int64_t>(kNoInteger)};
  }
  for (const std::string& name : kStrings) {
    out[name] =
        FixedLenFeature{.dtype = DType::kString, .default_value = Tensor::scalar<std::string>("")};
  }
  return out;
}

Rows taxi_records() {
  Rows out;
  for (const char* split : {"chicago_taxi_train", "chicago_taxi_eval"}) {
    const auto files = files_in(interop_folder() / "tfrecord" / split);
    for (const Tensors& batch : TFRecordDataset(files, {.compression_type = "GZIP"})
                                    .batch(1000)
                                    .map(ExampleParser(taxi_specs()))) {
      add_rows(batch, out);
    }
  }
  return out;
}

Rows taxi_table() {
  std::vector<CsvColumn> columns;
  for (const std::string& name : kFloats) columns.push_back({name, DType::kFloat32, kNoFloat});
  for (const std::string& name : kIntegers) {
    // Some integer columns are written like "3480.0".
    columns.push_back({name, DType::kFloat64, static_cast<double>(kNoInteger)});
  }
  for (const std::string& name : kStrings) columns.push_back({name, DType::kString});
  Rows out;
  for (const char* file : {"train.csv", "test.csv"}) {
    Tensors::Dict table = read_csv(data_folder() / "chicago_taxi" / file, columns).entries();
    for (const std::string& name : kIntegers) {
      table.at(name) = table.at(name).tensor().cast(DType::kInt64);
    }
    add_rows(table, out);
  }
  return out;
}

int left_over(const Rows& of, const Rows& without) {
  int out = 0;
  for (const auto& [row, count] : of) {
    const auto at = without.find(row);
    out += std::max(0, count - (at == without.end() ? 0 : at->second));
  }
  return out;
}

TEST(RealRecordsTest, TaxiRidesMatchTheTable) {
  if (!fs::exists(interop_folder() / "tfrecord") || !fs::exists(data_folder() / "chicago_taxi")) {
    GTEST_SKIP() << "no data: " << interop_folder() << ", " << data_folder();
  }
  const Rows records = taxi_records(), table = taxi_table();
  int count = 0;
  for (const auto& [row, times] : records) count += times;
  EXPECT_EQ(count, 9909 + 5091);
  // One ride differs between the source of the table and the records.
  EXPECT_EQ(left_over(records, table), 1);
  EXPECT_EQ(left_over(table, records), 1);
}

TEST(RealRecordsTest, FilesOfDecisionForestsAreRead) {
  const fs::path folder = interop_folder() / "tfrecord";
  if (!fs::exists(folder)) GTEST_SKIP() << "no data: " << folder;
  const ExampleParser parse({{"Num_1", VarLenFeature{DType::kFloat32}}});
  for (const auto& [name, type] : std::map<std::string, std::string>{
           {"ydf_toy.nocompress-tfe-tfrecord", ""}, {"ydf_toy.tfe-tfrecord", "GZIP"}}) {
    const TFRecordDataset records(
        {folder / (name + "-00000-of-00002"), folder / (name + "-00001-of-00002")},
        {.compression_type = type});
    int64_t count = 0;
    for (const Tensors& batch : records.batch(100).map(parse)) {
      count += batch["Num_1"].leaf().sparse().dense_shape[0];
    }
    EXPECT_EQ(count, 4) << name;
  }
}

TEST(RealRecordsTest, EventFilesAreRead) {
  const fs::path folder = interop_folder() / "events";
  if (!fs::exists(folder)) GTEST_SKIP() << "no data: " << folder;
  const std::vector<fs::path> files = files_in(folder);
  ASSERT_FALSE(files.empty());
  for (const fs::path& file : files) {
    TFRecordReader reader(file);
    std::string record;
    ASSERT_TRUE(reader.next(record));
    EXPECT_THAT(record, HasSubstr("brain.Event:"));
    while (reader.next(record)) EXPECT_FALSE(record.empty());
  }
}

}  // namespace keel::data::real_records_test
