// The tensors that ragged and sparse inputs and outputs consist of in KServe v2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <keel/savedmodel/serving/models/input_values.h>

namespace keel::serving {

// What a tensor holds of an input or output.
enum class TensorPart { kDense, kValues, kRowSplits, kIndices, kDenseShape };

// A tensor as metadata lists it.
struct PartInfo {
  std::string name = {};
  size_t tensor = 0;  // position of the input or output in the signature
  TensorPart part = TensorPart::kDense;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape = {};  // -1: any size
};

// Returns the tensors of inputs or outputs: "x" of a dense one, "x.values" and "x.row_splits" of a
// ragged one, "x.indices", "x.values" and "x.dense_shape" of a sparse one. A dense tensor that has
// such a name itself takes its place.
std::vector<PartInfo> parts_of(const std::vector<TensorInfo>& tensors);

}  // namespace keel::serving
