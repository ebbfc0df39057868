#include <keel/layers/visualization/internal/shape_text.h>

#include <absl/strings/str_join.h>

namespace keel {

std::string shape_text(const Shape& shape) {
  const auto append = [](std::string* out, int64_t dim) {
    *out += dim == kUnknown ? "None" : std::to_string(dim);
  };
  return "(" + absl::StrJoin(shape.dims(), ", ", append) + (shape.rank() == 1 ? ",)" : ")");
}

std::string shape_text(const Specs& specs) {
  if (specs.is_leaf()) return shape_text(specs.leaf().shape);
  if (specs.is_dict()) {
    const auto append = [](std::string* out, const auto& entry) {
      *out += entry.first + ": " + shape_text(entry.second);
    };
    return "{" + absl::StrJoin(specs.entries(), ", ", append) + "}";
  }
  const auto append = [](std::string* out, const Specs& child) { *out += shape_text(child); };
  return "[" + absl::StrJoin(specs.items(), ", ", append) + "]";
}

}  // namespace keel
