#include <keel/savedmodel/tool/json_tensors.h>

#include <absl/strings/str_cat.h>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <keel/framework/base/file_path_internal.h>
#include <keel/framework/base/internal/text.h>

namespace keel::tool {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  if (!(file && out << file.rdbuf())) {
    throw IoError(path, ": cannot be read: ", keel::internal::system_message());
  }
  return std::move(out).str();
}

template <class T>
T value_of(const Config& config) {
  if constexpr (std::is_same_v<T, std::string>) {
    return config.string();
  } else if constexpr (std::is_same_v<T, bool>) {
    return config.is_bool() ? config.boolean() : config.integer() != 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    // Infinities are kept, but a finite number must not become one.
    const double value = config.number();
    if (std::isfinite(value) && std::abs(value) > std::numeric_limits<T>::max()) {
      throw ValueError(value, " is out of range for ", DTypeOf<T>::kValue, "; use a wider dtype");
    }
    return static_cast<T>(value);
  } else {
    const int64_t value = config.integer();
    if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
      throw ValueError(value, " is out of range for ", DTypeOf<T>::kValue, "; use a wider dtype");
    }
    return static_cast<T>(value);
  }
}

Tensor tensor_of(const Config& data, DType dtype, const Shape& shape) {
  const Config::List& items = data.items();
  if (static_cast<int64_t>(items.size()) != shape.size()) {
    throw ValueError("shape ", shape, " requires ", shape.size(), " values, received ",
                     items.size());
  }
  return visit_any(dtype, [&]<class T>(T) {
    Tensor out = Tensor::uninitialized(shape, dtype);
    const auto values = out.mutable_data<T>();
    for (size_t i = 0; i < items.size(); ++i) values[i] = value_of<T>(items[i]);
    return out;
  });
}

TensorLike tensor_from(const std::string& name, const Config& entry) {
  const Config* dtype_name = entry.find("dtype");
  const DType dtype =
      dtype_name == nullptr ? DType::kFloat32 : dtype_from_name(dtype_name->string());
  std::vector<int64_t> dims;
  decode(entry["shape"], dims);
  const Shape shape(dims);
  if (!shape.fully_defined()) {
    throw ValueError("shape ", shape,
                     " has an unknown dimension; all dimensions must be 0 or more");
  }
  if (const Config* splits = entry.find("row_splits")) {
    const auto count = static_cast<int64_t>(splits->items().size());
    RaggedTensor out{tensor_of(entry["data"], dtype, shape),
                     tensor_of(*splits, DType::kInt64, {count})};
    out.validate(name);
    return out;
  }
  if (const Config* indices = entry.find("indices")) {
    const auto count = static_cast<int64_t>(entry["data"].items().size());
    SparseTensor out{tensor_of(*indices, DType::kInt64, {count, shape.rank()}),
                     tensor_of(entry["data"], dtype, {count}), shape};
    out.validate(name);
    return out;
  }
  return tensor_of(entry["data"], dtype, shape);
}

template <class T>
std::string json_value(T value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return to_json(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    // JSON has no such numbers. Python's json module writes and reads these names.
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
    return number_text(value);
  } else {
    return number_text(value);
  }
}

std::string json_list(const Tensor& tensor) {
  return visit_any(tensor.dtype(), [&]<class T>(T) {
    std::string out = "[";
    for (const T& value : tensor.data<T>()) {
      if (out.size() > 1) out += ", ";
      out += json_value<T>(value);
    }
    return out + "]";
  });
}

}  // namespace

std::vector<NamedTensor> read_json_tensors(const std::string& path, const char* key) {
  Config list;
  try {
    list = parse_json(text_of(path))[key];
    list.items();
  } catch (const ValueError& error) {
    throw IoError(path, ": ", error.what());
  } catch (const TypeError&) {
    throw IoError(path, ": expected a list of tensors under \"", key, "\"");
  }
  // A file that cannot be parsed is an IoError; errors of one tensor keep their type and name it.
  std::vector<NamedTensor> out;
  for (const Config& entry : list.items()) {
    std::string name = absl::StrCat(key, " ", out.size());
    try {
      name = entry["name"].string();
      out.push_back({.name = name, .value = tensor_from(name, entry)});
    } catch (const ValueError& error) {
      throw ValueError(path, ": '", name, "': ", error.what());
    } catch (const TypeError& error) {
      throw TypeError(path, ": '", name, "': ", error.what());
    }
  }
  return out;
}

std::string json_tensors(const std::vector<NamedTensor>& tensors, const char* key) {
  std::string out = absl::StrCat("{\"", key, "\": [");
  for (const NamedTensor& tensor : tensors) {
    const TensorLike& value = tensor.value;
    const Shape shape =
        value.layout() == Layout::kSparse ? value.sparse().dense_shape : value.values().shape();
    if (out.back() == '}') out += ",\n";
    out += "{\"name\": " + to_json(tensor.name) +
           str(", \"dtype\": \"", value.values().dtype(), "\"") +
           ", \"shape\": " + to_json(encode(shape));
    if (value.layout() == Layout::kRagged) {
      out += ", \"row_splits\": " + json_list(value.ragged().row_splits);
    } else if (value.layout() == Layout::kSparse) {
      out += ", \"indices\": " + json_list(value.sparse().indices);
    }
    out += ", \"data\": " + json_list(value.values()) + "}";
  }
  return out + "]}\n";
}

}  // namespace keel::tool
