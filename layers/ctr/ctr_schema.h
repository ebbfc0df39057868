// CtrSchema: the columns of a click log and the layout of its text files.
//
//   const CtrSchema schema = read_ctr_schema("clicks");         // clicks/schema.json
//   const CtrRows rows = read_ctr_csv(schema.train_file, schema);
//   rows.columns["user"]  // string or int64 [rows]
//   rows.labels           // float32 [rows, 1]
//
// schema.json names the label and the features; other keys are ignored:
//
//   {"label": "click", "numeric": ["price"], "categorical": ["user", "item"]}
//
// Optional keys describe files that are not CSV with a header line, such as Criteo's:
//
//   {"label": "label", "numeric": ["i1", ...], "categorical": ["c1", ...],
//    "delimiter": "\t", "columns": ["label", "i1", ..., "c1", ...],
//    "train": "train.txt", "test": "test.txt"}
//
//   delimiter     one character; default ","
//   columns       the names of all columns in order; the files then have no header line
//   train, test   file names in the folder; defaults "train.csv" and "test.csv"
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <keel/framework/data/csv/csv.h>

namespace keel {

// The columns of a click log.
struct CtrSchema {
  std::string label;
  std::vector<std::string> numeric = {}, categorical = {};
  char delimiter = ',';
  std::vector<std::string> columns = {};                  // empty: the files have a header line
  std::filesystem::path train_file = {}, test_file = {};  // read_ctr_schema sets them
  // Columns whose fields are integers or empty, and not all empty. Their tf.Example features are
  // int64. Such categorical columns are int64 in the model, too.
  std::set<std::string> integers = {};
};

// The value of an empty field in an integer categorical column, which is a separate category.
inline constexpr int64_t kNoCategory = -1;

// Reads `folder`/schema.json. Also reads the files that it names and `more_files`, to find the
// integer columns. Throws IoError if a file cannot be read. Throws ValueError, naming the file and
// the key, if schema.json lacks a key, has a delimiter of several characters, or lists a column
// twice. Throws ValueError if a file lacks a column.
CtrSchema read_ctr_schema(const std::filesystem::path& folder,
                          const std::vector<std::filesystem::path>& more_files = {});

// Parses the text of schema.json without reading data: train_file and test_file are as in the text,
// and `integers` is empty. `file` is used in error messages.
CtrSchema parse_ctr_schema(const std::string& json, const std::string& file = "schema.json");

// Rows of a click log. Numeric columns are float32, with 0 for empty fields. Categorical columns
// are strings or int64, with "" or kNoCategory for empty fields.
struct CtrRows {
  Tensors columns;  // {name: [rows]}
  Tensor labels;    // float32 [rows, 1], each 0 or 1
};

// Reads a file. Throws the errors of read_csv, and ValueError, naming the row, for a label other
// than 0 and 1.
CtrRows read_ctr_csv(const std::filesystem::path& file, const CtrSchema& schema);

// Returns the options with which read_ctr_csv reads the features: dtypes and values of empty
// fields.
data::CsvOptions ctr_csv_options(const CtrSchema& schema);

// Splits rows into training and validation rows. The part of a row depends only on its number and
// the seed. Throws ValueError unless 0 < validation < 1 and both parts get a row.
std::pair<CtrRows, CtrRows> split_ctr_rows(const CtrRows& rows, double validation, uint64_t seed);

}  // namespace keel
