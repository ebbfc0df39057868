// tf.Example: values by feature name, serialized to a byte string.
#pragma once

#include <map>
#include <string>

#include <keel/framework/tensor.h>

namespace keel::data {

// Serializes an example. The values of a feature are those of its tensor, flattened: strings as
// bytes, float32 and float64 as float, integers and bool as int64. An empty tensor (Tensor()) makes
// a feature without a list of values. Equal features give equal bytes. Throws ValueError for a
// symbolic tensor.
std::string serialize_example(const std::map<std::string, Tensor>& features);

}  // namespace keel::data
