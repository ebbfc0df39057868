#include <keel/framework/base/dtype.h>

#include <array>
#include <ostream>
#include <utility>

namespace keel {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 8> kNames = {{
    {DType::kFloat32, "float32"},
    {DType::kFloat64, "float64"},
    {DType::kInt32, "int32"},
    {DType::kInt64, "int64"},
    {DType::kBool, "bool"},
    {DType::kUint8, "uint8"},
    {DType::kString, "string"},
    {DType::kInt8, "int8"},
}};

}  // namespace

size_t size_of(DType dtype) {
  return visit_any(dtype, [](const auto& tag) { return sizeof(tag); });
}

std::string_view name_of(DType dtype) { return kNames.at(static_cast<size_t>(dtype)).second; }

DType dtype_from_name(std::string_view name) {
  for (const auto& [dtype, known] : kNames) {
    if (known == name) return dtype;
  }
  throw ValueError("dtype: unknown name '", name,
                   "'; use float32, float64, int32, int64, bool, uint8, string or int8");
}

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

}  // namespace keel
