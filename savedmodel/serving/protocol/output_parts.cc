#include <keel/savedmodel/serving/protocol/output_parts.h>

namespace keel::serving {

TensorView view_of_part(const TensorView& view, const PartInfo& part) {
  const auto integers = [](const int64_t* data, std::vector<int64_t> shape) {
    return TensorView{
        .dtype = DType::kInt64, .shape = Shape(shape), .data = data, .values = Shape(shape).size()};
  };
  const int64_t rank = view.shape.rank();
  switch (part.part) {
    case TensorPart::kRowSplits:
      return integers(view.row_splits, {view.rows + 1});
    case TensorPart::kIndices:
      return integers(view.indices, {view.values, rank});
    case TensorPart::kDenseShape:
      return integers(view.shape.dims().data(), {rank});
    case TensorPart::kValues:
    case TensorPart::kDense:
      break;
  }
  TensorView out = view;
  if (view.layout == Layout::kSparse) out.shape = {view.values};
  out.values = out.shape.size();
  return out;
}

void append_binary(std::string& out, const TensorView& view) {
  if (view.values == 0) return;
  if (view.dtype != DType::kString) {
    out.append(static_cast<const char*>(view.data),
               static_cast<size_t>(view.values) * size_of(view.dtype));
    return;
  }
  const auto* const strings = static_cast<const std::string*>(view.data);
  for (int64_t i = 0; i < view.values; ++i) {
    const auto length = static_cast<uint32_t>(strings[i].size());
    out.append(reinterpret_cast<const char*>(&length), sizeof length);
    out += strings[i];
  }
}

}  // namespace keel::serving
