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

struct CtrSchema {
  std::string label;
  std::vector<std::string> numeric = {}, categorical = {};
  char delimiter = ',';
  std::vector<std::string> columns = {};                  // empty: the files have a header line
  std::filesystem::path train_file = {}, test_file = {};  // read_ctr_schema sets them
  // Columns whose fields are whole numbers or empty, and not all empty. Their features in
  // tf.Example are int64; such categories are int64 in the model, too.
  std::set<std::string> integers = {};
};

// The value of an empty field in a categorical column of integers: a category of its own.
inline constexpr int64_t kNoCategory = -1;

// Reads `folder`/schema.json, and the files that it names and those of `more_files` to find the
// columns of integers. IoError if a file cannot be read. ValueError, naming the file and the key,
// if schema.json lacks a key, has a delimiter of several characters, or lists a column twice;
// ValueError if a file lacks a column.
CtrSchema read_ctr_schema(const std::filesystem::path& folder,
                          const std::vector<std::filesystem::path>& more_files = {});

// The same from the text of schema.json. `file` is for errors. Reads no data: train_file, test_file
// are as in the text and `integers` is empty.
CtrSchema parse_ctr_schema(const std::string& json, const std::string& file = "schema.json");

// Rows of a click log. Numbers are float32, empty fields 0; categories are strings or int64, empty
// fields "" or kNoCategory.
struct CtrRows {
  Tensors columns;  // {name: [rows]}
  Tensor labels;    // float32 [rows, 1], each 0 or 1
};

// Errors as read_csv; ValueError, naming the row, for a label that is neither 0 nor 1.
CtrRows read_ctr_csv(const std::filesystem::path& file, const CtrSchema& schema);

// How read_ctr_csv reads the features: dtypes and values of empty fields.
data::CsvOptions ctr_csv_options(const CtrSchema& schema);

// Splits rows into training and validation rows. A row's part depends on its number and the seed
// alone. Throws ValueError unless 0 < validation < 1 and both parts get a row.
std::pair<CtrRows, CtrRows> split_ctr_rows(const CtrRows& rows, double validation, uint64_t seed);

}  // namespace keel
