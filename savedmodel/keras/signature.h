// Signatures: named ways in which an exported model is served.
//
//   save_model(ranker, "ranker.keras",
//              {.signatures = {{"serve_examples",
//                               {{"age", {.feature = data::FixedLenFeature{{1}, DType::kInt64}}},
//                                {"watched", {.feature = data::RaggedFeature{DType::kInt64}}}}}}});
//   ...
//   const Signatures served = signatures("ranker.keras");
//   Tensors scores = served.at("serve_examples")(serialized);  // {"score": [batch, 1]}
//
// Every model has "serving_default", which takes the model's inputs; others take serialized
// tf.Example. Files of models hold them, and Keras reads these files as if they did not.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <keel/framework/data/example_parser.h>
#include <keel/layers/training/model.h>

namespace keel {

inline constexpr const char* kServingDefault = "serving_default";

// A feature of serialized examples, and what becomes of it.
struct ExampleFeature {
  data::FeatureSpec feature = {};
  std::string input = {};  // name of the model's input that takes it; empty: the feature's own name
};
using ExampleFeatures = std::map<std::string, ExampleFeature>;  // by feature name
// What signatures parse, by signature name.
using SignatureSpecs = std::map<std::string, ExampleFeatures>;

// The inputs of a functional or sequential model, by the names of its input layers. ValueError for
// other models, for one that does not know its input yet, and for two inputs of one name.
std::map<std::string, TensorSpec> model_inputs(const Model& model);

// A model and how it is called. Copies share the model; thread safe as the model is.
class Signature {
 public:
  // Takes the model's inputs. ValueError as of model_inputs.
  explicit Signature(ModelHandle model);
  // Takes serialized examples. TypeError and ValueError as of ExampleParser; ValueError, naming
  // feature and input, unless each input is fed by one feature: a dense input by a FixedLenFeature
  // of as many values, a sparse one by a VarLenFeature, a ragged one by a RaggedFeature; TypeError
  // for strings where numbers are needed and the other way round. Numbers become the input's dtype.
  Signature(ModelHandle model, const ExampleFeatures& features);

  // What it takes: the model's inputs, or "examples", strings [batch].
  const std::map<std::string, TensorSpec>& inputs() const;
  // What it returns; dimensions that follow from the values are unknown.
  std::map<std::string, TensorSpec> outputs() const;
  // Takes {input name: tensor}, or the tensor alone if there is one input, or what the model takes.
  // Returns {output name: tensor} (output_names.h), without training. ValueError for a dict with
  // other names; whatever the parser and the model throw, and ValueError for a sparse feature that
  // is longer than its input.
  Tensors operator()(const Tensors& inputs) const;

 private:
  friend std::map<std::string, Signature> planned_signatures(const ModelHandle& model,
                                                             const std::string& path);
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

using Signatures = std::map<std::string, Signature>;

// Those of a file of a whole model (".keras", ".h5", ".hdf5"), "serving_default" always among them.
// They run the model that was loaded from it, or a model loaded now: then by a ServingPlan, made
// once, with the same results (layers/serving/serving_plan.h); inputs of different numbers of rows,
// as of one user and many items, go to the model itself. Throws what load_model throws; ValueError,
// naming the file, for signatures that do not fit the model.
Signatures signatures(const ModelHandle& model, const std::string& path);
Signatures signatures(const std::string& path);  // defined in saved_model.cc

// The signatures of a model that has just been loaded from `path` and that nobody else has.
Signatures planned_signatures(const ModelHandle& model, const std::string& path);

}  // namespace keel
