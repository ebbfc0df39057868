// DenseFeatures and SequenceFeatures: what a model takes of a batch's features by its columns
// (tf.keras.layers.DenseFeatures, tf.keras.experimental.SequenceFeatures).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/layers/feature_columns/column_config.h>
#include <keel/layers/layer.h>

namespace keel {

struct DenseFeaturesOptions {
  std::vector<feature_column::Column> feature_columns = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("feature_columns", self.feature_columns);
  }
};

// Takes a dict of features; further keys are left out. Gives one tensor [batch, width], the columns
// side by side in ascending order of their names:
//   numeric column           its numbers
//   tpu::embedding_column    the activations, float [batch, dimension], that the estimator puts
//   under
//                            the feature's key
//   the same on a tensor core, and an ordinary embedding column
//                            rows of a variable of this layer, "<column>/embedding_weights", looked
//                            up by the ids under the feature's key
// ValueError for a feature that is not there, a sequence column, and no columns; TypeError for a
// categorical column, and for ids where the estimator should have put activations.
class DenseFeaturesLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "DenseFeatures";
  using Options = DenseFeaturesOptions;
  explicit DenseFeaturesLayer(Options options);

  const std::vector<feature_column::Column>& feature_columns() const { return columns_; }
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor part_of(const feature_column::FeatureColumn& column, const Tensors::Dict& features) const;

  const Options options_;
  const std::vector<feature_column::Column> columns_;  // by name
  std::map<std::string, Variable> tables_;             // by column
};

// Takes a dict of features with the activations of sequence columns of tpu::embedding_column, float
// [batch, max_sequence_length, dimension]. Gives the tuple
//   [batch, max_sequence_length, width], the columns side by side as above
//   int64 [batch], the steps of each row that are there: those of the first column
// ValueError for columns of different lengths, another column, and a feature that is not there.
class SequenceFeaturesLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "SequenceFeatures";
  using Options = DenseFeaturesOptions;
  explicit SequenceFeaturesLayer(Options options);

  const std::vector<feature_column::Column>& feature_columns() const { return columns_; }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
  const std::vector<feature_column::Column> columns_;  // by name
};

namespace layers {
using DenseFeatures = LayerHandle<DenseFeaturesLayer>;
using SequenceFeatures = LayerHandle<SequenceFeaturesLayer>;
}  // namespace layers

}  // namespace keel
