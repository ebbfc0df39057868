// Reading the bodies of predict requests on one core: megabytes of JSON per second, without
// computing. The inputs are those of a recommender: ids, numbers, a string and a list of ids.
#include <cmath>

#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/protocol/value_reader.h>

#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

using namespace keel::serving;

constexpr int64_t kRows = 256;

std::vector<TensorInfo> make_inputs() {
  const Shape one({kUnknown, 1});
  return {{.name = "user", .spec = {.shape = one, .dtype = DType::kInt64}},
          {.name = "dense", .spec = {.shape = Shape({kUnknown, 13})}},
          {.name = "country", .spec = {.shape = one, .dtype = DType::kString}},
          {.name = "seen",
           .spec = {.shape = Shape({kUnknown, kUnknown}),
                    .dtype = DType::kInt64,
                    .layout = Layout::kRagged}}};
}

// The values of one row, as JSON.
std::vector<std::string> row_values(Random& random) {
  std::string dense, seen;
  for (int i = 0; i < 13; ++i) {
    dense += str(i > 0 ? ", " : "", static_cast<float>(random.below(1 << 20)) / 1000.0F);
  }
  const auto count = static_cast<int>(random.below(20));
  for (int i = 0; i < count; ++i) seen += str(i > 0 ? ", " : "", random.below(10'000'000));
  return {str(random.below(10'000'000)), "[" + dense + "]", "\"c" + str(random.below(200)) + "\"",
          "[" + seen + "]"};
}

class Reading {
 public:
  Reading() : infos_(make_inputs()), inputs_(infos_.size()) {
    Random random(5);
    std::vector<std::string> columns(infos_.size());
    for (int64_t row = 0; row < kRows; ++row) {
      const std::vector<std::string> values = row_values(random);
      rows_ += row > 0 ? ", {" : "[{";
      for (size_t i = 0; i < infos_.size(); ++i) {
        rows_ += str(i > 0 ? ", \"" : "\"", infos_[i].name, "\": ", values[i]);
        columns[i] += (row > 0 ? ", " : "[") + values[i];
      }
      rows_ += "}";
    }
    rows_ += "]";
    for (size_t i = 0; i < infos_.size(); ++i) {
      columns_ += str(i > 0 ? ", \"" : "{\"", infos_[i].name, "\": ", columns[i], "]");
    }
    columns_ += "}";
  }

  size_t row_bytes() const { return rows_.size(); }
  size_t column_bytes() const { return columns_.size(); }

  void read_rows() {
    reset();
    JsonReader json(rows_);
    json.enter_array();
    for (int64_t row = 0; json.next_element(); ++row) {
      json.enter_object();
      for (size_t i = 0; json.next_key(key_); ++i) read_row(json, inputs_[i], row);
    }
    for (InputValues& input : inputs_) finish_rows(input, kRows);
  }
  void read_columns() {
    reset();
    JsonReader json(columns_);
    json.enter_object();
    for (size_t i = 0; json.next_key(key_); ++i) read_column(json, inputs_[i]);
  }
  void skip() { JsonReader(rows_).skip_value(); }

 private:
  void reset() {
    for (size_t i = 0; i < infos_.size(); ++i) inputs_[i].reset(infos_[i]);
  }

  const std::vector<TensorInfo> infos_;
  std::vector<InputValues> inputs_;
  std::string rows_, columns_, key_;
};

int run(const Options& options) {
  Report report(options, "bench_json");
  Reading reading;
  const Comparison times = compare({{"rows", [&] { reading.read_rows(); }},
                                    {"columns", [&] { reading.read_columns(); }},
                                    {"skipped", [&] { reading.skip(); }}});
  const auto add = [&](const char* op, size_t at, size_t bytes) {
    report.add({.op = op,
                .value = static_cast<double>(bytes) / times.timings[at].median / 1e6,
                .unit = "MB/s",
                .more = {{"bytes", static_cast<double>(bytes)}}});
  };
  add("instances", 0, reading.row_bytes());
  add("inputs", 1, reading.column_bytes());
  add("skipped", 2, reading.row_bytes());
  return report.finish();
}

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  return keel::bench::run(keel::bench::parse_options(
      argc, argv, "bench_json",
      "Reading the bodies of predict requests on one core, in megabytes of JSON per second."));
}
