// CSV files. The input's first byte chooses the delimiter, dtypes and defaults.
#include <algorithm>
#include <array>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/csv/csv.h>

#include "tests/fuzz/fuzz_input.h"

namespace {

// The table's text, or what is wrong with it.
std::string outcome(const std::string& path, const std::vector<keel::data::CsvColumn>& columns,
                    char delimiter) {
  try {
    std::string out;
    const keel::Tensors table = keel::data::read_csv(path, columns, delimiter);
    for (const auto& column : columns) {
      for (const auto& text : table[column.name].tensor().data<std::string>()) out += text + '\n';
    }
    return out;
  } catch (const keel::Error& e) {
    return e.what();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel;
  using namespace keel::fuzz;
  if (size == 0) return 0;
  static const bool once = (set_num_workers(2), true);
  static_cast<void>(once);
  const uint8_t mode = data[0];
  const std::string path = scratch_file("a.csv", text_of(data + 1, size - 1));
  const char delimiter = ",;\t|"[mode & 3];
  constexpr std::array<DType, 5> kTypes = {DType::kString, DType::kFloat32, DType::kInt64,
                                           DType::kFloat64, DType::kInt32};
  allow_own_errors([&] {
    std::vector<data::CsvColumn> columns;
    for (const std::string& name : data::csv_header(path, delimiter)) {
      data::CsvColumn column = {.name = name,
                                .dtype = kTypes[((mode >> 3) + columns.size()) % kTypes.size()]};
      if ((mode & 4) != 0 && column.dtype != DType::kString) column.default_value = -1;
      columns.push_back(std::move(column));
    }
    std::reverse(columns.begin(), columns.end());
    allow_own_errors([&] { data::read_csv(path, columns, delimiter); });
    for (data::CsvColumn& column : columns) column.dtype = DType::kString;
    for (data::CsvColumn& column : columns) column.default_value.reset();
    const std::string by_two = outcome(path, columns, delimiter);
    const SerialSection one_worker;
    require(outcome(path, columns, delimiter) == by_two,
            "another table with two workers than with one");
    const data::Dataset rows = data::csv_dataset(path, {.columns = columns,
                                                        .batch_size = 2,
                                                        .delimiter = delimiter,
                                                        .drop_remainder = mode >= 128});
    for (const Tensors& batch : rows) {
      require(batch[columns[0].name].tensor().dim(0) <= 2, "a batch of more than two rows");
    }
  });
  return 0;
}
