// Reading training data on one core: rows and megabytes per second of CSV and TFRecord files.
//
// The data resembles Criteo's: a label, 13 numbers and 26 id columns. Each reader is compared with
// reading the bytes of the file from the page cache. CSV readers are also compared with finding the
// commas and line breaks, which every parser needs (the limit).
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <unistd.h>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/tfrecord.h>

#include "benchmarks/support/data.h"
#include "benchmarks/support/measure.h"
#include "benchmarks/support/report.h"

namespace keel::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kNumbers = 13;
constexpr int kColumns = 26;
constexpr int64_t kBatch = 2048;

// Temporary files that are removed with the object.
class Files {
 public:
  Files() : folder_(fs::temp_directory_path() / ("bench_input_" + std::to_string(getpid()))) {
    fs::create_directory(folder_);
  }
  ~Files() { fs::remove_all(folder_); }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  fs::path path(const char* name) const { return folder_ / name; }

 private:
  const fs::path folder_;
};

std::string column_name(const char* kind, int column) { return kind + std::to_string(column); }

// One row of data, which all formats store.
struct Row {
  bool label;
  float numbers[kNumbers];
  int64_t ids[kColumns];
};

class Rows {
 public:
  Row next() {
    Row row = {.label = random_.below(4) == 0, .numbers = {}, .ids = {}};
    for (float& x : row.numbers) x = static_cast<float>(random_.below(100'000)) / 1000.0F;
    for (int64_t& id : row.ids) id = ids_(random_);
    return row;
  }

 private:
  Random random_{11};
  RowIds ids_{1'000'000, Popularity::kZipf};
};

// With `hashed`, ids are strings of eight hexadecimal digits, as in Criteo's files.
void write_csv(const fs::path& file, int64_t rows, bool hashed) {
  std::ofstream out(file);
  out << "label";
  for (int i = 0; i < kNumbers; ++i) out << ',' << column_name("n", i);
  for (int i = 0; i < kColumns; ++i) out << ',' << column_name("c", i);
  out << '\n';
  Rows source;
  for (int64_t r = 0; r < rows; ++r) {
    const Row row = source.next();
    out << row.label;
    for (float x : row.numbers) out << ',' << x;
    char text[16];
    for (int64_t id : row.ids) {
      std::snprintf(text, sizeof text, "%08x", static_cast<uint32_t>(id * 2654435761));
      out << ',' << (hashed ? std::string(text) : std::to_string(id));
    }
    out << '\n';
  }
}

data::CsvOptions csv_options(bool hashed) {
  data::CsvOptions out = {.columns = {{.name = "label", .dtype = DType::kInt64}},
                          .batch_size = kBatch};
  for (int i = 0; i < kNumbers; ++i) out.columns.push_back({.name = column_name("n", i)});
  for (int i = 0; i < kColumns; ++i) {
    out.columns.push_back(
        {.name = column_name("c", i), .dtype = hashed ? DType::kString : DType::kInt64});
  }
  return out;
}

void write_records(const fs::path& file, int64_t rows) {
  data::TFRecordWriter out(file);
  Rows source;
  for (int64_t r = 0; r < rows; ++r) {
    const Row row = source.next();
    std::map<std::string, Tensor> features;
    features["label"] = Tensor::from(std::vector<int64_t>{row.label}, {1});
    features["numbers"] =
        Tensor::from(std::vector<float>(row.numbers, row.numbers + kNumbers), {kNumbers});
    features["ids"] = Tensor::from(std::vector<int64_t>(row.ids, row.ids + kColumns), {kColumns});
    out.write(data::serialize_example(features));
  }
}

data::FeatureSpecs example_specs() {
  return {{"label", data::FixedLenFeature{.dtype = DType::kInt64}},
          {"numbers", data::FixedLenFeature{.shape = {kNumbers}}},
          {"ids", data::FixedLenFeature{.shape = {kColumns}, .dtype = DType::kInt64}}};
}

// Calls fn(bytes, n) for the file's blocks.
template <class Fn>
void for_each_block(const fs::path& file, const Fn& fn) {
  constexpr size_t kBlock = 256 * 1024;
  static std::vector<char> block(kBlock);
  const int from = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (from < 0) throw IoError("bench_input: cannot read ", file.string());
  for (ssize_t n = 1; n > 0;) {
    n = read(from, block.data(), kBlock);
    if (n > 0) fn(block.data(), n);
  }
  close(from);
}

volatile int64_t sink;  // keeps the compiler from removing unused results

void read_bytes(const fs::path& file) {
  int64_t sum = 0;
  for_each_block(file, [&](const char* bytes, ssize_t n) { sum += bytes[n - 1]; });
  sink = sum;
}

// A plain loop, which the compiler vectorizes.
void find_separators(const fs::path& file) {
  int64_t found = 0;
  for_each_block(file, [&](const char* bytes, ssize_t n) {
    for (ssize_t i = 0; i < n; ++i) found += bytes[i] == ',' || bytes[i] == '\n';
  });
  sink = found;
}

void read_all(const data::Dataset& dataset) {
  int64_t batches = 0;
  for (const Tensors& batch : dataset) batches += batch.is_dict();
  sink = batches;
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        report_(options, "bench_input"),
        rows_(options.quick ? 60'000 : 300'000) {
    set_num_workers(1);
    if (options.threads > 1) report_.note("readers use one core, whatever --threads says");
  }

  int run() {
    for (const bool hashed : {false, true}) csv(hashed);
    records();
    return report_.finish();
  }

 private:
  void csv(bool hashed) {
    const std::string name = hashed ? "csv_strings" : "csv_numbers";
    if (!options_.wants(name)) return;
    const fs::path file = files_.path("data.csv");
    write_csv(file, rows_, hashed);
    const data::Dataset dataset = data::csv_dataset(file, csv_options(hashed));
    add(name, file,
        {{name, [&] { read_all(dataset); }},
         {"separators", [&] { find_separators(file); }},
         {"bytes", [&] { read_bytes(file); }}});
  }

  void records() {
    if (!options_.wants("tfrecord")) return;
    const fs::path file = files_.path("data.tfrecord");
    write_records(file, rows_);
    const auto read_records = [&] {
      data::TFRecordReader reader(file);
      std::string record;
      int64_t bytes = 0;
      while (reader.next(record)) bytes += static_cast<int64_t>(record.size());
      sink = bytes;
    };
    const data::Dataset parsed =
        data::TFRecordDataset(file).batch(kBatch).map(data::ExampleParser(example_specs()));
    const Contender bytes = {"bytes", [&] { read_bytes(file); }};
    add("tfrecord_records", file, {{"records", read_records}, bytes});
    add("tfrecord_examples", file, {{"examples", [&] { read_all(parsed); }}, bytes});
  }

  // The second contender is the limit; the last one reads bytes.
  void add(const std::string& name, const fs::path& file, const std::vector<Contender>& all) {
    const Comparison times =
        compare(all, {.seconds_per_slice = 0.1, .turns = options_.quick ? 5 : 9});
    const auto megabytes = static_cast<double>(fs::file_size(file)) / 1e6;
    Result result = {.op = name,
                     .value = megabytes / times.timings[0].median,
                     .unit = "MB/s",
                     .ratio_to_limit = times.ratio(1, 0)};
    result.more.emplace_back("rows_per_s", static_cast<double>(rows_) / times.timings[0].median);
    for (size_t i = 1; i < all.size(); ++i) {
      result.more.emplace_back(all[i].name + "_mb_per_s", megabytes / times.timings[i].median);
    }
    report_.add(result);
  }

  const Options options_;
  Report report_;
  const int64_t rows_;
  const Files files_;
};

}  // namespace
}  // namespace keel::bench

int main(int argc, char** argv) {
  const keel::bench::Options options = keel::bench::parse_options(
      argc, argv, "bench_input",
      "Rows and megabytes per second of reading CSV and TFRecord files.");
  return keel::bench::Bench(options).run();
}
