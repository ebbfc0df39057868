// Reads and writes named tensors in JSON: {"inputs": [{"name", "dtype", "shape", "data"}, ...]}.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel::tool {

// An entry of a list of tensors.
struct NamedTensor {
  std::string name;
  TensorLike value;
};

// Returns the entries of the list under `key`. "data" is a flat list of the values in row-major
// order. "dtype" defaults to float32. A ragged tensor also has "row_splits", and its "shape" is the
// shape of all values. A sparse tensor also has "indices", a flat list, and its "shape" is the
// dense shape. Throws IoError if the file cannot be read or does not have this form, and ValueError
// or TypeError for an inconsistent entry. Errors name the file and the tensor.
std::vector<NamedTensor> read_json_tensors(const std::string& path, const char* key);

// Returns the JSON text of such a list. Numbers have the fewest digits that read back the same
// value.
std::string json_tensors(const std::vector<NamedTensor>& tensors, const char* key);

}  // namespace keel::tool
