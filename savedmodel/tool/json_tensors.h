// Named tensors in JSON files: {"inputs": [{"name", "dtype", "shape", "data"}, ...]}.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel::tool {

struct NamedTensor {
  std::string name;
  TensorLike value;
};

// The entries of the list under `key`. "data" has the values flat, row-major; "dtype" is float32
// if it is left out. A ragged tensor has "row_splits" too, and its shape is that of all values; a
// sparse one has "indices", flat, and its shape is the dense one. IoError for a file that cannot be
// read or is no such JSON; ValueError and TypeError for an entry that contradicts itself. Errors
// name the file and the tensor.
std::vector<NamedTensor> read_json_tensors(const std::string& path, const char* key);

// The same list as text; numbers are the shortest that read back the same.
std::string json_tensors(const std::vector<NamedTensor>& tensors, const char* key);

}  // namespace keel::tool
