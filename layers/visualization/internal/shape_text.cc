#include <keel/layers/visualization/internal/shape_text.h>

namespace keel {

std::string shape_text(const Shape& shape) {
  std::string out;
  for (const int64_t dim : shape.dims()) {
    out += (out.empty() ? "" : ", ") + (dim == kUnknown ? "None" : std::to_string(dim));
  }
  return "(" + out + (shape.rank() == 1 ? ",)" : ")");
}

std::string shape_text(const Specs& specs) {
  if (specs.is_leaf()) return shape_text(specs.leaf().shape);
  std::string out;
  if (specs.is_dict()) {
    for (const auto& [key, child] : specs.entries()) {
      out += (out.empty() ? "" : ", ") + key + ": " + shape_text(child);
    }
    return "{" + out + "}";
  }
  for (const Specs& child : specs.items()) out += (out.empty() ? "" : ", ") + shape_text(child);
  return "[" + out + "]";
}

}  // namespace keel
