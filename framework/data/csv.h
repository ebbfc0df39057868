// Reading CSV (RFC 4180: commas, quotes doubled inside quotes, line breaks inside quotes; LF or
// CRLF; a header line) into batches of columns.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "framework/data/dataset.h"

namespace keel::data {

struct CsvColumn {
  std::string name;               // as in the header
  DType dtype = DType::kFloat32;  // float32, float64, int32, int64 or string
  // The value of an empty field. Unset: an empty field of a numeric column is an error; of a
  // string column it is the empty string.
  std::optional<double> default_value = {};
};

struct CsvOptions {
  std::vector<CsvColumn> columns;  // those to read, in any order; the others are skipped
  int64_t batch_size = 1;
  char delimiter = ',';
  bool drop_remainder = false;
};

// Batches {column name: [batch]} of the file's rows in order, read as they are asked for: memory
// is bounded by the batch and a read buffer, not by the file. The file is opened when iteration
// starts, and its header checked when the dataset is made. All workers parse at once; rows and
// errors are the same for any number of them, and the first row that is wrong is the one named.
// IoError for a file that cannot be read, a quote that is not closed, or a row with another number
// of fields than the header. ValueError for a column that the header does not have, and for text
// that is no finite number (or out of range) in a numeric column. Errors carry the file, the row
// (the record after the header is row 1), the column and the text.
Dataset csv_dataset(const std::filesystem::path& file, CsvOptions options);

// The whole file as {column name: [rows]}. Errors as above.
Tensors read_csv(const std::filesystem::path& file, std::vector<CsvColumn> columns,
                 char delimiter = ',');

// Names in the header line. IoError if the file cannot be read or is empty.
std::vector<std::string> csv_header(const std::filesystem::path& file, char delimiter = ',');

}  // namespace keel::data
