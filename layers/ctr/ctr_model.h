// Models of click-through rates: reads click logs, converts raw columns to ids and numbers, and
// creates Wide & Deep (Cheng et al. 2016), DLRM (Naumov et al. 2019) and DCN v2 (Wang et al. 2021).
//
//   const CtrSchema schema = read_ctr_schema("clicks");                  // clicks/schema.json
//   const CtrRows rows = read_ctr_csv(schema.train_file, schema);
//   const CtrFeatures features(schema, rows.columns, {.min_count = 2});  // learns vocabularies
//   const CtrModel ctr = make_ctr_model(features, {.model = "dlrm"});
//   ctr.model->fit(features(rows.columns), rows.labels);
//   const Functional serving = make_serving_model(features, ctr.model);  // takes raw columns
//
// All layers exist in Keras, so an exported serving model includes the preprocessing.
#pragma once

#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/tfrecord.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/layer.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/preprocessing.h>

namespace keel {

// The columns of a click log and the layout of its text files. The file schema.json names the label
// and the features:
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
//   quoting, max_quoted_lines   see CsvOptions
//   rows_train, rows_test, pos_train, pos_test, card, split   facts about the rows; ignored
struct CtrSchema {
  std::string label;                          // name of the column with 0 and 1
  std::vector<std::string> numeric = {};      // names of the columns with numbers
  std::vector<std::string> categorical = {};  // names of the columns with categories
  char delimiter = ',';                       // separates the fields of a line
  std::vector<std::string> columns = {};      // empty: the files have a header line
  std::filesystem::path train_file = {};      // set by read_ctr_schema
  std::filesystem::path test_file = {};       // set by read_ctr_schema
  std::optional<bool> quoting = {};           // as in CsvOptions
  int64_t max_quoted_lines = 100;             // as in CsvOptions
  // Columns whose fields are integers or empty, and not all empty. Their tf.Example features are
  // int64. Such categorical columns are int64 in the model, too.
  std::set<std::string> integers = {};
};

// The value of an empty field in an integer categorical column, which is a separate category. A
// column of a text file with this number is a column of strings.
inline constexpr int64_t kNoCategory = std::numeric_limits<int64_t>::min();

// Reads `folder`/schema.json. Also reads the files that it names and `more_files`, to find the
// integer columns. Throws IoError if a file cannot be read. Throws ValueError, naming the file and
// the key, if schema.json lacks a key or has an unknown one, has a delimiter of several characters,
// lists a column twice, or lists a column without a name. Throws ValueError if a file lacks a
// column.
// `quoting`, if set, replaces the key of schema.json.
CtrSchema read_ctr_schema(const std::filesystem::path& folder,
                          const std::vector<std::filesystem::path>& more_files = {},
                          std::optional<bool> quoting = {});

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

// Options of CtrFeatures.
struct CtrFeaturesOptions {
  // A category with fewer training rows is mapped to id 0, the id of unknown categories.
  int64_t min_count = 1;
  // Maximum number of bins of a numeric column. A value that is at least as frequent as an average
  // bin gets a separate bin.
  int64_t max_buckets = 20;
  // Set: the tables of categorical columns map raw ids to rows and need no vocabulary. The key type
  // is that of each column.
  std::optional<DynamicVocabulary> dynamic = {};
  std::vector<std::string> dynamic_columns = {};  // columns with such tables; empty: all
};

// Maps categories and binned numbers to ids, and normalizes numbers.
class CtrFeatures {
 public:
  // Learns vocabularies, bins, means and variances from the training rows. Throws ValueError if an
  // option is out of range and for a name in `dynamic_columns` that is not a categorical column.
  CtrFeatures(CtrSchema schema, const Tensors& train_columns, CtrFeaturesOptions options = {});

  // An id feature of a column: the id of its category, or of the bin of its number.
  struct IdColumn {
    std::string name;                               // name of the column
    int64_t vocabulary_size;                        // number of ids; 0 with `dynamic`
    std::optional<DynamicVocabulary> dynamic = {};  // set if the ids are the raw values
    std::string table = {};                         // name of the column's table
  };
  // Returns the id features: the categorical columns, then the numeric ones.
  const std::vector<IdColumn>& id_columns() const { return id_columns_; }
  // Returns the number of numeric columns.
  int64_t num_numeric() const { return static_cast<int64_t>(schema_.numeric.size()); }

  // Returns {"ids": {column: int64 [rows], or string for dynamic ids}, "numeric": float32 [rows,
  // num_numeric]}. Numbers are normalized; "numeric" is omitted if there are no numeric columns.
  // `columns` may be symbolic.
  Tensors operator()(const Tensors& columns) const;
  // Returns symbolic raw columns, {name: [batch]}.
  Tensors raw_inputs() const;
  // Returns the name of the input of the serving model that takes a column: the name of the column,
  // in which '_' replaces each '/'. A number is appended if another column has this name.
  const std::string& input_name(const std::string& column) const;
  // Returns `name`, with a number appended if a layer of the serving model has this name.
  std::string unused_layer_name(const std::string& name) const;
  // Returns the feature specs of the columns in tf.Example: one value per column, optional where a
  // field of the text file may be empty.
  std::map<std::string, data::FeatureSpec> example_features() const;

 private:
  template <class T>
  void add_lookup(const std::string& name, const Tensor& column);
  bool is_dynamic(const std::string& name) const;
  void name_inputs();
  std::string add_layer_name(const std::string& name);

  const CtrSchema schema_;
  const CtrFeaturesOptions options_;
  // One per categorical column; unset for dynamic ids.
  std::vector<std::optional<LayerHandle<Layer>>> lookups_;
  std::vector<layers::Discretization> buckets_;       // one per numeric column
  std::vector<layers::Normalization> normalization_;  // one, or empty without numeric columns
  std::vector<IdColumn> id_columns_;
  std::map<std::string, std::string> input_names_;  // by column
  std::set<std::string> layer_names_;               // of all layers of the serving model
  std::vector<std::string> reshape_names_;          // one per numeric column
  std::string concatenate_name_;
};

// Options of make_ctr_model.
struct CtrModelOptions {
  std::string model = "dlrm";               // "wide_deep", "dlrm" or "dcn"
  int64_t embedding_dim = 8;                // width of the embedding tables
  std::vector<int64_t> hidden = {128, 64};  // units of the hidden layers of the top network
  double dropout = 0.0;                     // dropout rate after each hidden layer
  double embedding_dropout = 0.0;           // dropout rate of the elements of looked-up rows
  EmbeddingOptimizer embedding_optimizer = "adagrad";  // optimizer of the tables
  std::string storage_dtype = "float32";  // dtype of the stored tables; see TableConfig
};

// A model and its embedding layer.
struct CtrModel {
  Functional model;                // the output of CtrFeatures -> probability [batch, 1]
  layers::TPUEmbedding embedding;  // holds all tables
};

// Creates the model under the current strategy. Throws ValueError for an unknown model.
CtrModel make_ctr_model(const CtrFeatures& features, const CtrModelOptions& options = {});

// Combines preprocessing and model for serving: maps raw columns to the probability.
Functional make_serving_model(const CtrFeatures& features, const Functional& model);

}  // namespace keel
