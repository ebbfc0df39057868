#include "tests/conformance/golden_arrays.h"

namespace keel::conformance {
namespace {

constexpr std::string_view kTextOfArray = "tensor(";

// Returns a required field of an array.
const Config& part(const Config& array, const char* key) {
  const Config* found = array.is_dict() ? array.find(key) : nullptr;
  if (found == nullptr || !found->is_list()) {
    throw ValueError("an array must have the lists 'shape' and 'data', received ", to_json(array));
  }
  return *found;
}

Shape shape_of(const Config& array) {
  const Shape shape(integers_of(part(array, "shape")));
  const size_t values = part(array, "data").items().size();
  if (values != static_cast<size_t>(shape.size())) {
    throw ValueError("an array of shape ", shape, " has ", values, " values");
  }
  return shape;
}

DType dtype_of(const Config& array) {
  DType dtype = DType::kFloat32;
  const Config* found = array.find("dtype");
  if (found != nullptr && !found->is_null()) decode(*found, dtype);
  return dtype;
}

std::vector<double> numbers_of(const Config& array) {
  std::vector<double> out;
  for (const Config& item : part(array, "data").items()) {
    if (item.is_string()) {  // what is not finite
      out.push_back(std::stod(item.string()));
    } else {
      out.push_back(item.is_bool() ? static_cast<double>(item.boolean()) : item.number());
    }
  }
  return out;
}

Tensor string_tensor(const Config& array) {
  std::vector<std::string> values;
  for (const Config& item : part(array, "data").items()) values.push_back(item.string());
  return Tensor::from(values, shape_of(array));
}

}  // namespace

Config without_complex(const Config& array) {
  const Config* const dtype = array.is_dict() ? array.find("dtype") : nullptr;
  if (dtype == nullptr || *dtype != Config("complex64")) return array;
  Config::List shape = part(array, "shape").items(), data;
  shape.emplace_back(2);
  for (const Config& number : part(array, "data").items()) {
    data.insert(data.end(), number.items().begin(), number.items().end());
  }
  return Config::dict({{"shape", shape}, {"data", data}});
}

Array golden_array(const Config& array) {
  shape_of(array);
  return {.shape = integers_of(part(array, "shape")), .values = numbers_of(array)};
}

Tensor golden_tensor(const Config& array) {
  if (array.is_null()) return {};
  const Shape shape = shape_of(array);
  const DType dtype = dtype_of(array);
  if (dtype == DType::kString) return string_tensor(array);
  return Tensor::from(numbers_of(array), shape).cast(dtype);
}

std::vector<Tensor> golden_tensors(const Config& list) {
  std::vector<Tensor> out;
  for (const Config& item : list.items()) out.push_back(golden_tensor(item));
  return out;
}

Config golden_config(const Config& config) {
  if (config.is_string() && config.string().starts_with(kTextOfArray) &&
      config.string().ends_with(")")) {
    const std::string& text = config.string();
    return parse_json(text.substr(kTextOfArray.size(), text.size() - kTextOfArray.size() - 1));
  }
  if (config.is_list()) {
    Config::List out;
    for (const Config& item : config.items()) out.push_back(golden_config(item));
    return out;
  }
  if (!config.is_dict()) return config;
  Config out = Config::dict();
  for (const auto& [key, value] : config.entries()) out.set(key, golden_config(value));
  return out;
}

}  // namespace keel::conformance
