// ExampleParser and parse_example: parse batches of tf.Example into tensors (tf.io.parse_example).
//
//   const data::ExampleParser parse({{"age", data::FixedLenFeature{.dtype = DType::kInt64}},
//                                    {"watched", data::RaggedFeature{.dtype = DType::kInt64}}});
//   auto rows = data::TFRecordDataset("users.tfrecord").batch(256).map(parse);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>

#include <keel/framework/tensor_like.h>

namespace keel::data {

// The dtype of a feature must be float32, int64 or string, the types that examples can hold.

// A feature with the same number of values in every example. Parsed to a dense tensor with the
// dimensions [batch] + shape.
struct FixedLenFeature {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  // The value for examples in which the feature is missing: a scalar or a tensor of `shape`. If
  // empty, a missing feature is an error.
  Tensor default_value = {};
};

// A feature with any number of values. Parsed to a sparse tensor [batch, n], where n is the largest
// number of values of an example in the batch.
struct VarLenFeature {
  DType dtype = DType::kInt64;
};

// A feature with any number of values. Parsed to a ragged tensor, whose row i holds the values of
// example i.
struct RaggedFeature {
  DType dtype = DType::kInt64;
};

// The specification of one feature.
using FeatureSpec = std::variant<FixedLenFeature, VarLenFeature, RaggedFeature>;
// The specifications of all features by name.
using FeatureSpecs = std::map<std::string, FeatureSpec>;

// Returns "FixedLenFeature", "VarLenFeature" or "RaggedFeature".
const char* name_of(const FeatureSpec& spec);
// Returns the dtype of the feature.
DType dtype_of(const FeatureSpec& spec);
// Returns the spec of the parsed tensor; its batch dimension is unknown.
TensorSpec parsed_spec(const FeatureSpec& spec);

// Parses batches of examples with specs that are validated once. Copies share the specs. Thread
// safe.
class ExampleParser {
 public:
  // Throws TypeError for a dtype that examples cannot hold, and for a default value that does not
  // have the feature's dtype. Throws ValueError if there are no features, if a shape has unknown
  // dimensions, and if a default value is neither a scalar nor of the feature's shape.
  explicit ExampleParser(FeatureSpecs specs);

  // Parses serialized examples, strings of shape [batch], into {feature name: values}. Features
  // without a spec are skipped. If an example contains a name twice, the last one applies. A
  // feature without a list of values counts as missing.
  //
  // Throws TypeError if `serialized` is not a dense string tensor, and if the values of a feature
  // do not have the dtype of its spec.
  //
  // Throws ValueError in these cases:
  // - `serialized` does not have shape [batch];
  // - an example is not a valid tf.Example;
  // - a feature without a default value is missing;
  // - the number of values does not match the shape of a FixedLenFeature.
  // Messages contain the position of the example, the feature, and the expected and received
  // values.
  Tensors operator()(const Tensors& serialized) const;

  // Returns the specs.
  const FeatureSpecs& specs() const;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

// Returns ExampleParser(specs)(serialized).
Tensors parse_example(const Tensor& serialized, const FeatureSpecs& specs);

}  // namespace keel::data
