#include <keel/layers/visualization/internal/shape_text.h>

#include <keel/framework/base/internal/text.h>

namespace keel {

std::string shape_text(const Shape& shape) {
  const auto text = [](int64_t dim) { return dim == kUnknown ? "None" : std::to_string(dim); };
  return "(" + joined(shape.dims(), text) + (shape.rank() == 1 ? ",)" : ")");
}

std::string shape_text(const Specs& specs) {
  if (specs.is_leaf()) return shape_text(specs.leaf().shape);
  if (specs.is_dict()) {
    const auto text = [](const auto& entry) {
      return entry.first + ": " + shape_text(entry.second);
    };
    return "{" + joined(specs.entries(), text) + "}";
  }
  return "[" + joined(specs.items(), [](const Specs& child) { return shape_text(child); }) + "]";
}

}  // namespace keel
