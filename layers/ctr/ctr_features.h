// CtrFeatures: preprocessing for click-through rate models, from raw columns to ids and numbers.
//
//   const CtrFeatures features(schema, rows.columns, {.min_count = 2});  // learns vocabularies
//   const CtrModel ctr = make_ctr_model(features, {.model = "dlrm"});    // ctr_model.h
//   ctr.model->fit(features(rows.columns), rows.labels);
//   const Functional serving = make_serving_model(features, ctr.model);  // takes raw columns
//
// All layers exist in Keras, so an exported serving model includes the preprocessing.
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

// Options of CtrFeatures.
struct CtrFeaturesOptions {
  // A category with fewer training rows is mapped to id 0, the id of unknown categories.
  int64_t min_count = 1;
  // Maximum number of bins of a numeric column. A value that is at least as frequent as an average
  // bin gets a separate bin.
  int64_t max_buckets = 20;
};

// Maps categories and binned numbers to ids, and normalizes numbers.
class CtrFeatures {
 public:
  // Learns vocabularies, bins, means and variances from the training rows. Throws ValueError if an
  // option is out of range.
  CtrFeatures(CtrSchema schema, const Tensors& train_columns, CtrFeaturesOptions options = {});

  // An id feature of a column: the id of its category, or of the bin of its number.
  struct IdColumn {
    std::string name;
    int64_t vocabulary_size;
  };
  const std::vector<IdColumn>& id_columns() const { return id_columns_; }
  int64_t num_numeric() const { return static_cast<int64_t>(schema_.numeric.size()); }

  // Returns {"ids": {column: int64 [rows]}, "numeric": float32 [rows, num_numeric]}. Numbers are
  // normalized; "numeric" is omitted if there are no numeric columns. `columns` may be symbolic.
  Tensors operator()(const Tensors& columns) const;
  // Returns symbolic raw columns, {name: [batch]}.
  Tensors raw_inputs() const;
  // Returns the feature specs of the columns in tf.Example: one value per column, optional where a
  // field of the text file may be empty.
  std::map<std::string, data::FeatureSpec> example_features() const;

 private:
  template <class T>
  void add_lookup(const std::string& name, const Tensor& column);

  const CtrSchema schema_;
  const CtrFeaturesOptions options_;
  std::vector<LayerHandle<Layer>> lookups_;           // one per categorical column
  std::vector<layers::Discretization> buckets_;       // one per numeric column
  std::vector<layers::Normalization> normalization_;  // one, or empty without numeric columns
  std::vector<IdColumn> id_columns_;
};

}  // namespace keel
