// DenseFeatures and SequenceFeatures: convert the features of a batch to model inputs, as described
// by feature columns (tf.keras.layers.DenseFeatures, tf.keras.experimental.SequenceFeatures).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/layers/feature_columns/feature_column.h>
#include <keel/layers/layer.h>

namespace keel {

namespace feature_column {

// Returns {"class_name": ..., "config": ...}; see FeatureColumn::get_config.
Config encode(const Column& column);
// Creates the column of a config. Throws ValueError for an unknown class or key, and under the
// conditions of the functions that create columns.
void decode(const Config& config, Column& column);
void decode(const Config& config, Categorical& column);  // from its get_config()

}  // namespace feature_column

// Options of DenseFeaturesLayer and SequenceFeaturesLayer.
struct DenseFeaturesOptions {
  std::vector<feature_column::Column> feature_columns = {};  // required, in any order
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("feature_columns", self.feature_columns);
  }
};

// Converts a dict of features to one tensor [batch, width], the concatenated columns in ascending
// order of their names. Other keys of the dict are ignored. Each column contributes:
//   numeric column           its numbers
//   tpu::embedding_column    the activations, float [batch, dimension], that the estimator stores
//                            under the feature's key
//   tpu::embedding_column on a tensor core, or an ordinary embedding column
//                            rows of a variable of this layer, "<column>/embedding_weights", looked
//                            up by the ids under the feature's key
// Throws ValueError for a missing feature, for a sequence column, and without columns. Throws
// TypeError for a categorical column, and for ids where the estimator must store activations.
class DenseFeaturesLayer final : public OptionsLayer<DenseFeaturesOptions, Layer> {
 public:
  static constexpr char kClassName[] = "DenseFeatures";
  explicit DenseFeaturesLayer(Options options);

  // Returns the columns in ascending order of their names.
  const std::vector<feature_column::Column>& feature_columns() const { return columns_; }

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor part_of(const feature_column::FeatureColumn& column, const Tensors::Dict& features) const;

  const std::vector<feature_column::Column> columns_;  // sorted by name
  std::map<std::string, Variable> tables_;             // by column
};

// Converts a dict with the activations of sequence columns of tpu::embedding_column, float [batch,
// max_sequence_length, dimension], to the tuple
//   [batch, max_sequence_length, width]  the concatenated columns in ascending order of names
//   int64 [batch]                        the number of steps of each row in the first column
// Throws ValueError for columns with different max_sequence_length, for another kind of column, and
// for a missing feature.
class SequenceFeaturesLayer final : public OptionsLayer<DenseFeaturesOptions, Layer> {
 public:
  static constexpr char kClassName[] = "SequenceFeatures";
  explicit SequenceFeaturesLayer(Options options);

  // Returns the columns in ascending order of their names.
  const std::vector<feature_column::Column>& feature_columns() const { return columns_; }

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const std::vector<feature_column::Column> columns_;  // sorted by name
};

namespace layers {
using DenseFeatures = LayerHandle<DenseFeaturesLayer>;
using SequenceFeatures = LayerHandle<SequenceFeaturesLayer>;
}  // namespace layers

}  // namespace keel
