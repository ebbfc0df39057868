// Reads and writes named tensors in JSON files: {"inputs": [{"name", "dtype", "shape", "data"},
// ...]}.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel::tool {

// A tensor and its name.
struct NamedTensor {
  std::string name;
  TensorLike value;
};

// Returns the entries of the list under `key`. "data" contains the values, flat and row-major.
// "dtype" defaults to float32. A ragged tensor also has "row_splits", and its shape is that of all
// values. A sparse tensor has flat "indices", and its shape is the dense one. Throws IoError if the
// file cannot be read or is not valid JSON of this form, and ValueError or TypeError for an
// inconsistent entry. Errors name the file and the tensor.
std::vector<NamedTensor> read_json_tensors(const std::string& path, const char* key);

// Returns the list as text. Numbers are written with the fewest digits that read back as the same
// value.
std::string json_tensors(const std::vector<NamedTensor>& tensors, const char* key);

}  // namespace keel::tool
