// Signatures: named functions of a saved model, for serving.
//
//   save_model(ranker, "ranker.keras",
//              {.signatures = {{"serve_examples",
//                               {{"age", {.feature = data::FixedLenFeature{{1}, DType::kInt64}}},
//                                {"watched", {.feature = data::RaggedFeature{DType::kInt64}}}}}}});
//   ...
//   const Signatures served = signatures("ranker.keras");
//   Tensors scores = served.at("serve_examples")(serialized);  // {"score": [batch, 1]}
//
// Every model has "serving_default", which takes the model's inputs. The other signatures take
// serialized tf.Example and are stored in the file of the model. Keras ignores them when it reads
// the file.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <keel/framework/data/tfrecord.h>
#include <keel/layers/training/model.h>

namespace keel {

class ServingPlan;

// The name of the signature that every model has.
inline constexpr const char* kServingDefault = "serving_default";

// A feature of serialized examples, and the input of the model that it feeds.
struct ExampleFeature {
  data::FeatureSpec feature = {};  // how the feature is parsed
  std::string input = {};          // name of the input; if empty, the name of the feature
};
using ExampleFeatures = std::map<std::string, ExampleFeature>;  // by feature name
// The features that signatures parse, by signature name.
using SignatureSpecs = std::map<std::string, ExampleFeatures>;

// Returns the specs of the inputs of a functional or sequential model, by the names of its input
// layers. Throws ValueError for other models, for a sequential model that has no input yet, and if
// two inputs have the same name.
std::map<std::string, TensorSpec> model_inputs(const Model& model);

// A function that runs a model. Copies share the model. As thread safe as calls of the model.
class Signature {
 public:
  // Makes a signature that takes the model's inputs. Throws the errors of model_inputs().
  explicit Signature(ModelHandle model);
  // Makes a signature that takes serialized examples. Each input of the model must be fed by
  // exactly one feature: a dense input by a FixedLenFeature with the same number of values, a
  // sparse input by a VarLenFeature, and a ragged input by a RaggedFeature. Numbers are cast to the
  // input's dtype. Throws ValueError, naming feature and input, if they do not match in this way,
  // TypeError if a string feature feeds a numeric input or vice versa, and the errors of
  // ExampleParser.
  Signature(ModelHandle model, const ExampleFeatures& features);

  // Returns the specs of the arguments: the model's inputs, or "examples", a string tensor [batch].
  const std::map<std::string, TensorSpec>& inputs() const;
  // Returns the specs of the results. Dimensions that depend on values are unknown.
  std::map<std::string, TensorSpec> outputs() const;
  // Runs the model in inference mode and returns {output name: tensor}. `inputs` is a dict {input
  // name: tensor}, or the single tensor if there is one input, or the structure that the model
  // takes. Throws ValueError if a dict has other names and if a sparse feature is longer than its
  // input, and the errors of the parser and the model.
  Tensors operator()(const Tensors& inputs) const;

  // Returns the plan that runs the model, or null if the model itself is called.
  const std::shared_ptr<const ServingPlan>& serving_plan() const;

 private:
  friend std::map<std::string, Signature> planned_signatures(const ModelHandle& model,
                                                             const std::string& path);
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

// The signatures of a model by name.
using Signatures = std::map<std::string, Signature>;

// Return the signatures of the file of a whole model (".keras", ".h5", ".hdf5"), always including
// "serving_default". The first function runs `model`, which must have been loaded from the file.
// The second one loads the model and runs it by a ServingPlan, which gives the same results faster
// (layers/serving/serving_plan.h). Inputs with different numbers of rows, such as one user and many
// items, are run by the model itself. Throw the errors of load_model(), and ValueError, naming the
// file, if a signature does not fit the model.
Signatures signatures(const ModelHandle& model, const std::string& path);
Signatures signatures(const std::string& path);  // defined in saved_model.cc

// Like signatures(path), for a model that was loaded from `path` and of which the caller has no
// other handle, so that its weights cannot change.
Signatures planned_signatures(const ModelHandle& model, const std::string& path);

}  // namespace keel
