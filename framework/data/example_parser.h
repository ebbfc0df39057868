// ExampleParser, parse_example: batches of tf.Example into tensors (tf.io.parse_example).
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

// Dtypes are float32, int64 and string, which are what examples hold.

// As many values as `shape` has, in each example: dense [batch, shape...].
struct FixedLenFeature {
  Shape shape = {};
  DType dtype = DType::kFloat32;
  // What examples without a value get: a scalar, or of `shape`. Empty: they are an error.
  Tensor default_value = {};
};

// Any number of values: sparse [batch, longest of the batch].
struct VarLenFeature {
  DType dtype = DType::kInt64;
};

// Any number of values: ragged [batch, (values)].
struct RaggedFeature {
  DType dtype = DType::kInt64;
};

using FeatureSpec = std::variant<FixedLenFeature, VarLenFeature, RaggedFeature>;
using FeatureSpecs = std::map<std::string, FeatureSpec>;

// "FixedLenFeature", ...
const char* name_of(const FeatureSpec& spec);
DType dtype_of(const FeatureSpec& spec);
// Of what parsing makes, with a batch of any size.
TensorSpec parsed_spec(const FeatureSpec& spec);

// Parses with specs that were checked once. Copies share them; thread safe.
class ExampleParser {
 public:
  // TypeError for a dtype that examples do not have and for a default value of another dtype;
  // ValueError for no features, for a shape with unknown dimensions and for a default value of
  // another shape.
  explicit ExampleParser(FeatureSpecs specs);

  // Serialized examples, strings [batch], into {feature name: values}. Features that no spec names
  // are left out, unread. Of a name that an example has twice the last one counts. A feature
  // without a list of values counts as one that is missing.
  // TypeError unless given strings, and for values of another dtype; ValueError unless they are
  // [batch], for bytes that are no example, for a missing feature without a default value and for
  // another number of values than a shape has. Errors say the example's position, the feature, and
  // what was expected and received.
  Tensors operator()(const Tensors& serialized) const;

  const FeatureSpecs& specs() const;

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan_;
};

// ExampleParser(specs)(serialized).
Tensors parse_example(const Tensor& serialized, const FeatureSpecs& specs);

}  // namespace keel::data
