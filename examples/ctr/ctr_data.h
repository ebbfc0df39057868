// Click data sets in folders of train.csv, test.csv and schema.json, and how their columns become
// the inputs of a model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/data/dataset.h"
#include "layers/normalization/normalization.h"
#include "layers/preprocessing/discretization.h"
#include "layers/preprocessing/string_lookup.h"

namespace keel::examples {

// schema.json: {"label": "click", "numeric": ["price", ...], "categorical": ["user", ...]};
// further keys are ignored.
struct CtrSchema {
  std::string label;
  std::vector<std::string> numeric, categorical;
};

// IoError if the folder or the file cannot be read, ValueError if it lacks a key.
CtrSchema read_schema(const std::filesystem::path& folder);

// The rows of one file as they stand in it: {column: [rows]}, numbers as float32, an empty one as
// 0, categories as strings. ValueError for a label that is neither 0 nor 1, with its row.
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

 private:
  const CtrSchema schema_;
  std::vector<layers::StringLookup> lookups_;         // by categorical column
  std::vector<layers::Discretization> buckets_;       // by numeric column
  std::vector<layers::Normalization> normalization_;  // one, if there are numeric columns
  std::vector<IdColumn> id_columns_;
};

}  // namespace keel::examples
