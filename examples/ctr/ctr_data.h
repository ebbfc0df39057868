// Click data sets in folders of train.csv, test.csv and schema.json, and how their columns become
// the inputs of a model.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "layers/normalization/normalization.h"
#include "layers/preprocessing/discretization.h"
#include "savedmodel/signature.h"

namespace keel::examples {

// schema.json: {"label": "click", "numeric": ["price", ...], "categorical": ["user", ...]};
// further keys are ignored.
struct CtrSchema {
  std::string label;
  std::vector<std::string> numeric, categorical;
  // Those of the columns whose fields in train.csv and test.csv are whole numbers or empty, and not
  // all empty. Their features in examples are integers; categories are so in the model, too.
  std::set<std::string> integers = {};
};

// The value of an empty field in a categorical column of integers: a category of its own.
inline constexpr int64_t kNoCategory = -1;

// IoError if the folder or one of its files cannot be read; ValueError if schema.json lacks a key,
// or the other ones a column.
CtrSchema read_schema(const std::filesystem::path& folder);

// The rows of one file as they stand in it: {column: [rows]}, numbers as float32, an empty one as
// 0, categories as strings or int64, an empty one as "" or kNoCategory. ValueError for a label that
// is neither 0 nor 1, with its row.
struct CtrRows {
  Tensors columns;
  Tensor labels;  // float32 [rows, 1]
};
CtrRows read_ctr_csv(const std::filesystem::path& file, const CtrSchema& schema);

// Layers that turn raw columns into ids and numbers, adapted to the training rows. They are part
// of the exported model, so serving takes raw columns.
class CtrPreprocessing {
 public:
  CtrPreprocessing(const CtrSchema& schema, const Tensors& train_columns);

  // One id feature for each column: categories by their vocabulary (0 is for all it lacks),
  // numbers by the quantile that they fall into.
  struct IdColumn {
    std::string name;
    int64_t vocabulary_size;
  };
  const std::vector<IdColumn>& id_columns() const { return id_columns_; }
  int64_t num_numeric() const { return static_cast<int64_t>(schema_.numeric.size()); }

  // {"ids": {column: int64 [rows]}, "numeric": float32 [rows, num_numeric]}, the numbers
  // normalized; without "numeric" if there is none. On symbolic columns too.
  Tensors operator()(const Tensors& columns) const;
  // Symbolic raw columns.
  Tensors raw_inputs() const;
  // How they come in tf.Example: a value each, or none where a field of the CSV file is empty.
  ExampleFeatures example_features() const;

 private:
  template <class Lookup>
  void add_lookup(const Lookup& lookup, const std::string& name, const Tensor& column);

  const CtrSchema schema_;
  std::vector<LayerHandle<Layer>> lookups_;           // by categorical column
  std::vector<layers::Discretization> buckets_;       // by numeric column
  std::vector<layers::Normalization> normalization_;  // one, if there are numeric columns
  std::vector<IdColumn> id_columns_;
};

}  // namespace keel::examples
