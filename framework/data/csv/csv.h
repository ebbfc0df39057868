// Reads CSV files into batches of columns. The format is RFC 4180: fields are separated by commas
// and lines end in LF or CRLF. A quoted field may contain commas and line breaks, and quotes inside
// it are doubled.
//
// In files separated by tabs a quote is data, as in text/tab-separated-values: the programs that
// write such logs do not quote. CsvOptions::quoting selects the other reading of either format.
//
// Other delimiters and files without a header line, such as Criteo's click logs, are supported:
//
//   csv_dataset("train.txt", {.columns = {{.name = "label"},
//                                         {.name = "c1", .dtype = DType::kString}},
//                             .batch_size = 4096, .delimiter = '\t', .has_header = false,
//                             .column_names = {"label", "i1", "c1"}});
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>

namespace keel::data {

// A column to read.
struct CsvColumn {
  std::string name;               // as in the header or CsvOptions::column_names
  DType dtype = DType::kFloat32;  // float32, float64, int32, int64 or string
  // The value of an empty field of a numeric column; if unset, an empty field is an error. Must not
  // be set for a string column, in which an empty field is the empty string.
  std::optional<double> default_value = {};
};

// Options for reading.
struct CsvOptions {
  std::vector<CsvColumn> columns;  // required; columns to read, in any order; others are skipped
  int64_t batch_size = 1;          // rows per batch, at least 1
  char delimiter = ',';            // the character between two fields
  bool drop_remainder = false;     // drop the last batch if it has fewer than batch_size rows
  // True if the first record contains the names; if false, column_names is required.
  bool has_header = true;
  // The names of all columns of the file, in order. They replace the names of the header.
  std::vector<std::string> column_names = {};
  // True if fields may be quoted; false if quotes are data. If unset, fields may be quoted unless
  // the delimiter is a tab.
  std::optional<bool> quoting = {};
  // The most lines that a quoted field may span, at least 1. A quote that is data, but is read as
  // the start of a field, would otherwise hide all lines up to the next quote.
  int64_t max_quoted_lines = 100;
};

// Returns a dataset of batches {column name: [batch]} of the file's rows in order. Rows are read on
// demand, so memory use depends on the batch size, not on the size of the file. The header is
// checked when the dataset is created; the file is opened again when an iteration starts. All
// workers parse in parallel. Rows and errors do not depend on the number of workers, and an error
// always names the first invalid row.
//
// Throws IoError in these cases:
// - the file cannot be read;
// - a quote is not closed or is followed by text, or a quoted field spans more than
//   max_quoted_lines lines; the message names the line on which it begins;
// - the number of fields of a row differs from the number of columns.
// Throws ValueError in these cases:
// - the file does not have a requested column, has it twice, or it is requested twice;
// - `columns` is empty, or batch_size or max_quoted_lines is less than 1;
// - column_names is missing for a file without a header, or differs in length from the header;
// - a default value is set for a string column or cannot be represented in the column's dtype;
// - text of a numeric column is not a finite number or is out of range;
// - text of a string column is not UTF-8.
// Throws TypeError if the dtype of a column is not one of those listed at CsvColumn.
//
// Messages about rows contain the file, the row (row 1 is the first record after the header, if
// there is one), the column and the text.
Dataset csv_dataset(const std::filesystem::path& file, CsvOptions options);

// Return the whole file as {column name: [rows]}. Throw the same errors as csv_dataset(). The
// options `batch_size` and `drop_remainder` are ignored.
Tensors read_csv_table(const std::filesystem::path& file, const CsvOptions& options);
Tensors read_csv(const std::filesystem::path& file, std::vector<CsvColumn> columns,
                 char delimiter = ',');

// Returns the names in the header line, which may be quoted unless the delimiter is a tab. Throws
// IoError if the file cannot be read or is empty.
std::vector<std::string> csv_header(const std::filesystem::path& file, char delimiter = ',');

}  // namespace keel::data
