#include <keel/savedmodel/serving/models/tensor_parts.h>

#include <algorithm>

namespace keel::serving {

std::vector<PartInfo> parts_of(const std::vector<TensorInfo>& tensors) {
  std::vector<PartInfo> out;
  const auto is_dense_name = [&](const std::string& name) {
    return std::ranges::any_of(tensors, [&](const TensorInfo& tensor) {
      return tensor.spec.layout == Layout::kDense && tensor.name == name;
    });
  };
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    const std::span<const int64_t> dims = tensor.spec.shape.dims();
    const auto add = [&](const char* suffix, TensorPart part, DType dtype,
                         std::vector<int64_t> shape) {
      std::string name = tensor.name + suffix;
      if (part != TensorPart::kDense && is_dense_name(name)) return;
      out.push_back({.name = std::move(name),
                     .tensor = i,
                     .part = part,
                     .dtype = dtype,
                     .shape = std::move(shape)});
    };
    const auto rank = static_cast<int64_t>(dims.size());
    switch (tensor.spec.layout) {
      case Layout::kDense:
        add("", TensorPart::kDense, tensor.spec.dtype, {dims.begin(), dims.end()});
        break;
      case Layout::kRagged: {
        std::vector<int64_t> shape(dims.begin() + 1, dims.end());
        shape[0] = -1;
        add(".values", TensorPart::kValues, tensor.spec.dtype, std::move(shape));
        add(".row_splits", TensorPart::kRowSplits, DType::kInt64, {-1});
        break;
      }
      case Layout::kSparse:
        add(".indices", TensorPart::kIndices, DType::kInt64, {-1, rank});
        add(".values", TensorPart::kValues, tensor.spec.dtype, {-1});
        add(".dense_shape", TensorPart::kDenseShape, DType::kInt64, {rank});
        break;
    }
  }
  return out;
}

}  // namespace keel::serving
