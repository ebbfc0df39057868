// FeatureSpace: encodes the columns of a table for a model (keras.utils.FeatureSpace).
//
//   utils::FeatureSpace space({.features = {{"age", "float_normalized"},
//                                           {"city", "string_categorical"},
//                                           {"visits", utils::integer_categorical(
//                                                          {.output_mode = "int"})}},
//                              .output_mode = "dict",
//                              .crosses = {{"city", "visits"}}});
//   space->adapt(dataset);                          // of dicts {"age": ..., "city": ..., ...}
//   auto encoded = dataset.map([=](const Tensors& rows) { return space(rows); });
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>
#include <keel/layers/layer.h>

namespace keel {
namespace utils {

// A column of the table: its dtype, the layer that preprocesses it, and how the result is encoded.
class Feature {
 public:
  // A kind with default options:
  //   "float"                unchanged
  //   "float_rescaled"       Rescaling
  //   "float_normalized"     Normalization
  //   "float_discretized"    Discretization into FeatureSpaceOptions::num_discretization_bins
  //   "integer_categorical"  IntegerLookup
  //   "string_categorical"   StringLookup
  //   "integer_hashed"       Hashing into FeatureSpaceOptions::hashing_dim bins
  //   "string_hashed"        the same
  // FeatureSpace throws ValueError for another kind.
  Feature(const char* kind) : kind_(kind) {}             // NOLINT: implicit
  Feature(std::string kind) : kind_(std::move(kind)) {}  // NOLINT: implicit
  // Makes the preprocessor when the space is constructed. It is called with the name that the layer
  // should have, "<name of the feature>_preprocessor".
  using Maker = std::function<LayerHandle<Layer>(const std::string& name)>;
  // Describes a column of this dtype. `output_mode` is "float", "int" or "one_hot".
  Feature(DType dtype, Maker preprocessor, std::string output_mode)
      : dtype_(dtype),
        preprocessor_(std::move(preprocessor)),
        output_mode_(std::move(output_mode)) {}

  const std::string& kind() const { return kind_; }                // empty: see preprocessor()
  DType dtype() const { return dtype_; }                           // of the column
  const Maker& preprocessor() const { return preprocessor_; }      // empty if there is a kind
  const std::string& output_mode() const { return output_mode_; }  // "float", "int" or "one_hot"

 private:
  std::string kind_;
  DType dtype_ = DType::kFloat32;
  Maker preprocessor_;
  std::string output_mode_;
};

// A combination of features that are integers or strings after preprocessing.
struct Cross {
  // Crosses the features into FeatureSpaceOptions::crossing_dim bins.
  Cross(std::initializer_list<std::string> names) : feature_names(names) {}
  // Crosses the features into crossing_dim bins; `mode` is "one_hot" or "int".
  Cross(std::vector<std::string> names, int64_t dim, std::string mode = "one_hot")
      : feature_names(std::move(names)), crossing_dim(dim), output_mode(std::move(mode)) {}
  std::string name() const;  // the names of the features, joined by "_X_"

  std::vector<std::string> feature_names;    // at least two
  std::optional<int64_t> crossing_dim = {};  // number of bins
  std::string output_mode = "one_hot";       // or "int"
};

// Options of float_rescaled().
struct FloatRescaledOptions {
  double scale = 1.0;     // factor
  double offset = 0.0;    // added after scaling
  std::string name = {};  // the preprocessor is named "<name>_preprocessor"; default: the feature
};
// Options of float_discretized().
struct FloatDiscretizedOptions {
  int64_t num_bins = 0;                                    // required, > 1
  std::optional<std::vector<double>> bin_boundaries = {};  // unset: adapt() computes them
  std::string output_mode = "one_hot";                     // or "int"
  std::string name = {};  // the preprocessor is named "<name>_preprocessor"; default: the feature
};
// Options of integer_categorical() and string_categorical().
struct CategoricalOptions {
  std::optional<int64_t> max_tokens = {};  // maximum size of the vocabulary
  int64_t num_oov_indices = 1;             // number of indices for words outside the vocabulary
  std::string output_mode = "one_hot";     // or "int"
  std::string name = {};  // the preprocessor is named "<name>_preprocessor"; default: the feature
};
// Options of integer_hashed() and string_hashed().
struct HashedOptions {
  int64_t num_bins = 0;                 // required, > 0
  std::string output_mode = "one_hot";  // or "int"
  std::string name = {};  // the preprocessor is named "<name>_preprocessor"; default: the feature
};
// Return features of the kinds above with options of their own. In Keras, they are methods of
// FeatureSpace. float_feature() is FeatureSpace.float().
Feature float_feature(const std::string& name = {});
Feature float_rescaled(const FloatRescaledOptions& options);
Feature float_normalized(const std::string& name = {});
Feature float_discretized(const FloatDiscretizedOptions& options);
Feature integer_categorical(const CategoricalOptions& options);
Feature string_categorical(const CategoricalOptions& options);
Feature integer_hashed(const HashedOptions& options);
Feature string_hashed(const HashedOptions& options);
// Returns a feature with a layer of your own, which takes [batch, 1] (FeatureSpace.feature()).
Feature feature(DType dtype, const LayerHandle<Layer>& preprocessor, std::string output_mode);

}  // namespace utils

// Options of FeatureSpace.
struct FeatureSpaceOptions {
  std::map<std::string, utils::Feature> features = {};  // the columns by name; required
  std::string output_mode = "concat";                   // or "dict"
  std::vector<utils::Cross> crosses = {};               // further features
  int64_t crossing_dim = 32;                            // bins of crosses without a number
  int64_t hashing_dim = 32;                             // bins of "..._hashed"
  int64_t num_discretization_bins = 32;                 // bins of "float_discretized"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Preprocesses the columns of a table, crosses some of them, encodes the results, and concatenates
// them: the features in ascending order of their names, then the crosses in theirs.
//
// Input is a dict with a tensor of shape [batch] or [batch, 1] for each feature; further keys are
// ignored. Output is float32 [batch, width] or, for output_mode "dict", a dict with a tensor
// [batch, ...] for each feature and cross. A dict of scalars gives the encoding of one row, without
// the batch.
//
// As a layer the space is one node of a functional model. To save a model in a form that Keras
// reads, use get_inputs() and get_encoded_features(), whose graph consists of layers of Keras.
class FeatureSpaceLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "FeatureSpace";
  using Options = FeatureSpaceOptions;
  // Throws ValueError
  // - if there are no features, and for an unknown kind, output_mode or name in a cross;
  // - if a one_hot encoding is requested of a preprocessor without a known number of categories;
  // - for output_mode "concat", if a feature or cross is not encoded.
  // Preprocessors that adapt() must prepare are checked by adapt().
  explicit FeatureSpaceLayer(Options options);

  // Adapts each preprocessor that learns from data and was not given its state, and finishes the
  // space. Elements of the dataset are dicts of scalars, or of batches of shape [batch] or
  // [batch, 1]. The dataset is read once for each such preprocessor.
  void adapt(const data::Dataset& dataset);
  // Return a dict of symbolic inputs [batch, 1] by feature, and the encoding of these inputs. They
  // throw RuntimeError before adapt(), if it is needed.
  Tensors get_inputs() const;
  Tensors get_encoded_features() const;
  // Returns the preprocessor of a feature. Throws ValueError for an unknown name.
  LayerHandle<Layer> preprocessor(const std::string& feature_name) const;
  // Returns the config of Keras, in which each feature is a "Feature" with its preprocessor. It
  // contains what adapt() has learned, except the weights of Normalization.
  Config get_config() const override;
  // Makes a space from such a config. It needs no adapt() if the config has the state of all
  // preprocessors. Throws ValueError and TypeError for an invalid config.
  static std::shared_ptr<FeatureSpaceLayer> from_config(const Config& config);

 private:
  // A feature or a cross: the layers that compute it.
  struct Part {
    DType dtype = DType::kFloat32;        // of a feature's column
    std::vector<std::string> names = {};  // the features of a cross
    LayerHandle<Layer> layer;             // the preprocessor, or the HashedCrossing
    std::string output_mode;
    std::shared_ptr<Layer> encoder = {};  // for "one_hot", from finish() on
  };
  using Parts = std::map<std::string, Part>;

  Tensors call(const Tensors& inputs, const CallContext& context) override;
  void add_feature(const std::string& name, const utils::Feature& feature);
  void add_cross(const utils::Cross& cross);
  // Creates the encoders and the symbolic inputs and outputs.
  void finish();
  void add_encoder(const std::string& name, Part& part, const TensorSpec& spec) const;
  Tensors encode(const Tensors::Dict& columns) const;
  void check_finished() const;

  const Options options_;
  Parts features_, crosses_;
  std::vector<std::string> adaptable_;  // features whose preprocessors adapt() prepares
  Tensors inputs_, encoded_;            // symbolic
  bool finished_ = false;
};

namespace utils {
// A handle to the layer, under Keras's name.
using FeatureSpace = LayerHandle<FeatureSpaceLayer>;
}  // namespace utils

}  // namespace keel
