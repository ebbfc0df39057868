// Reading CSV (RFC 4180: commas, quotes doubled inside quotes, line breaks inside quotes; LF or
// CRLF) into batches of columns.
//
// Other delimiters and files without a header line, such as Criteo's click logs:
//
//   csv_dataset("train.txt", {.columns = {{.name = "label"}, {.name = "c1", .dtype =
//   DType::kString}},
//                             .batch_size = 4096, .delimiter = '\t', .has_header = false,
//                             .column_names = {"label", "i1", "c1"}});
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>

namespace keel::data {

struct CsvColumn {
  std::string name;               // as in the header or CsvOptions::column_names
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
  bool has_header = true;  // the first record holds names; false: needs column_names
  // Names of all columns of the file, in order, in place of those in the header.
  std::vector<std::string> column_names = {};
};

// Batches {column name: [batch]} of the file's rows in order, read as they are asked for: memory
// is bounded by the batch and a read buffer, not by the file. The file is opened when iteration
// starts, and its header checked when the dataset is made. All workers parse at once; rows and
// errors are the same for any number of them, and the first row that is wrong is the one named.
// IoError for a file that cannot be read, a quote that is not closed, or a row with another number
// of fields than there are columns. ValueError for a column that the file does not have, for
// column_names of another number than the header's, for text that is no finite number (or out of
// range) in a numeric column, and for text that is not UTF-8 in a string column. Errors carry the
// file, the row (the first record after the header, if there is one, is row 1), the column and the
// text.
Dataset csv_dataset(const std::filesystem::path& file, CsvOptions options);

// The whole file as {column name: [rows]}. Errors as above. Options for batches have no effect.
Tensors read_csv_table(const std::filesystem::path& file, const CsvOptions& options);
Tensors read_csv(const std::filesystem::path& file, std::vector<CsvColumn> columns,
                 char delimiter = ',');

// Names in the header line. IoError if the file cannot be read or is empty.
std::vector<std::string> csv_header(const std::filesystem::path& file, char delimiter = ',');

}  // namespace keel::data
