// Signatures: named ways to serve an exported model.
//
//   save_model(ranker, "ranker.keras",
//              {.signatures = {{"serve_examples",
//                               {{"age", {.feature = data::FixedLenFeature{{1}, DType::kInt64}}},
//                                {"watched", {.feature = data::RaggedFeature{DType::kInt64}}}}}}});
//   ...
//   const Signatures served = signatures("ranker.keras");
//   Tensors scores = served.at("serve_examples")(serialized);  // {"score": [batch, 1]}
//
// Every model has "serving_default", which takes the model's inputs. Other signatures take
// serialized tf.Example messages. Model files store them, and Keras ignores them when it reads
// these files.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <keel/framework/data/example_parser.h>
#include <keel/layers/training/model.h>

namespace keel {

inline constexpr const char* kServingDefault = "serving_default";

// A feature of serialized examples and the input that it feeds.
struct ExampleFeature {
  data::FeatureSpec feature = {};
  std::string input = {};  // name of the model's input; empty: the feature's name
};
using ExampleFeatures = std::map<std::string, ExampleFeature>;  // by feature name
// The features of each signature, by signature name.
using SignatureSpecs = std::map<std::string, ExampleFeatures>;

// Returns the inputs of a functional or sequential model by the names of its input layers. Throws
// ValueError for other models, for a model whose input is not known yet, and for two inputs with
// the same name.
std::map<std::string, TensorSpec> model_inputs(const Model& model);

// A model and the way it is called. Copies share the model. A signature is as thread-safe as its
// model.
class Signature {
 public:
  // Creates a signature that takes the model's inputs. Throws ValueError like model_inputs.
  explicit Signature(ModelHandle model);
  // Creates a signature that takes serialized examples. Each input must be fed by exactly one
  // feature: a dense input by a FixedLenFeature with the same number of values, a sparse input by a
  // VarLenFeature, a ragged input by a RaggedFeature. Numbers are converted to the input's dtype.
  // Throws ValueError, naming feature and input, if these rules are violated, TypeError for strings
  // instead of numbers or numbers instead of strings, and the errors of ExampleParser.
  Signature(ModelHandle model, const ExampleFeatures& features);

  // Returns the inputs: the model's inputs, or "examples", strings of shape [batch].
  const std::map<std::string, TensorSpec>& inputs() const;
  // Returns the outputs. Dimensions that depend on the values are unknown.
  std::map<std::string, TensorSpec> outputs() const;
  // Calls the model, not in training mode. `inputs` is {input name: tensor}, a single tensor if
  // there is one input, or the structure that the model takes. Returns {output name: tensor}
  // (output_names.h). Throws ValueError for a dict with other names and for a sparse feature that
  // is longer than its input, and the errors of the parser and the model.
  Tensors operator()(const Tensors& inputs) const;

 private:
  friend std::map<std::string, Signature> planned_signatures(const ModelHandle& model,
                                                             const std::string& path);
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

using Signatures = std::map<std::string, Signature>;

// Returns the signatures of a whole-model file (".keras", ".h5", ".hdf5"), which always include
// "serving_default". The first form calls `model`, which was loaded from the file. The second form
// loads the model and runs a ServingPlan that is created once, with the same results
// (layers/serving/serving_plan.h). Inputs with different numbers of rows, such as one user and many
// items, are passed to the model itself. Throws the errors of load_model, and ValueError, naming
// the file, for signatures that do not fit the model.
Signatures signatures(const ModelHandle& model, const std::string& path);
Signatures signatures(const std::string& path);  // defined in saved_model.cc

// Returns the signatures, run by plans, of a model that has just been loaded from `path` and that
// has no other users.
Signatures planned_signatures(const ModelHandle& model, const std::string& path);

}  // namespace keel
