// CtrFeatures: the preprocessing of click models, from raw columns to ids and numbers.
//
//   const CtrFeatures features(schema, rows.columns, {.min_count = 2});  // learns vocabularies
//   const CtrModel ctr = make_ctr_model(features, {.model = "dlrm"});    // ctr_model.h
//   ctr.model->fit(features(rows.columns), rows.labels);
//   const Functional serving = make_serving_model(features, ctr.model);  // takes raw columns
//
// All layers are Keras's, so an exported serving model includes the preprocessing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/framework/data/example_parser.h>
#include <keel/layers/ctr/ctr_schema.h>
#include <keel/layers/layer_handle.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/discretization.h>

namespace keel {

struct CtrFeaturesOptions {
  // A category of fewer training rows shares id 0, that of unknown categories.
  int64_t min_count = 1;
  // Most bins of a numeric column. A value that is as frequent as the rows of a bin has its own.
  int64_t max_buckets = 20;
};

class CtrFeatures {
 public:
  // Learns vocabularies, bins, means and variances from the training rows. ValueError for options
  // out of range.
  CtrFeatures(CtrSchema schema, const Tensors& train_columns, CtrFeaturesOptions options = {});

  // One id feature for each column: that of its category, or of the bin of its number.
  struct IdColumn {
    std::string name;
    int64_t vocabulary_size;
  };
  const std::vector<IdColumn>& id_columns() const { return id_columns_; }
  int64_t num_numeric() const { return static_cast<int64_t>(schema_.numeric.size()); }

  // {"ids": {column: int64 [rows]}, "numeric": float32 [rows, num_numeric]}, the numbers
  // normalized; without "numeric" if there are none. Also for symbolic columns.
  Tensors operator()(const Tensors& columns) const;
  // Symbolic raw columns, {name: [batch]}.
  Tensors raw_inputs() const;
  // The columns in tf.Example: one value each, or none where a field of the text is empty.
  std::map<std::string, data::FeatureSpec> example_features() const;

 private:
  template <class T>
  void add_lookup(const std::string& name, const Tensor& column);

  const CtrSchema schema_;
  const CtrFeaturesOptions options_;
  std::vector<LayerHandle<Layer>> lookups_;           // by categorical column
  std::vector<layers::Discretization> buckets_;       // by numeric column
  std::vector<layers::Normalization> normalization_;  // one, if there are numeric columns
  std::vector<IdColumn> id_columns_;
};

}  // namespace keel
