#include "tests/conformance/ops_arguments.h"

#include "tests/conformance/case_fields.h"
#include "tests/conformance/golden_arrays.h"

namespace keel::conformance {
namespace {

bool is_array(const Config& value) {
  return value.is_dict() && value.find("shape") != nullptr && value.find("data") != nullptr;
}

Tensor read(const Config& array, bool wide) {
  const Tensor out = golden_tensor(without_complex(array));
  return wide && out.dtype() == DType::kFloat32 ? out.cast(DType::kFloat64) : out;
}

}  // namespace

OpArguments::OpArguments(const Config& arguments, bool wide) : arguments_(arguments) {
  for (const auto& [name, value] : arguments.entries()) {
    if (is_array(value)) tensors_[name] = {read(value, wide)};
    if (!value.is_list() || value.items().empty() || !is_array(value.items()[0])) continue;
    for (const Config& item : value.items()) tensors_[name].push_back(read(item, wide));
  }
}

std::vector<Tensor>& OpArguments::tensors(const std::string& name) {
  asked_.insert(name);
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) throw ValueError("argument '", name, "' is not an array");
  return it->second;
}
bool OpArguments::has(const std::string& name) { return !config(name).is_null(); }
bool OpArguments::names(const std::string& name) { return arguments_.find(name) != nullptr; }
std::optional<Tensor> OpArguments::maybe_tensor(const std::string& name) {
  return has(name) ? std::optional(tensor(name)) : std::nullopt;
}
keras_ops::Operand OpArguments::operand(const std::string& name) {
  const Config& value = config(name);
  if (value.is_bool()) return value.boolean();
  if (value.is_integer()) return value.integer();
  if (value.is_number()) return value.number();
  return tensor(name);
}
std::optional<keras_ops::Operand> OpArguments::maybe_operand(const std::string& name) {
  return has(name) ? std::optional(operand(name)) : std::nullopt;
}
keras_ops::Complex OpArguments::complex(const std::string& name) {
  const std::vector<Tensor>& parts = tensors(name);
  return parts.size() == 1 ? keras_ops::view_as_complex(parts[0])
                           : keras_ops::Complex(parts.at(0), parts.at(1));
}

double OpArguments::number(const std::string& name, double otherwise) {
  return maybe_number(name).value_or(otherwise);
}
std::optional<double> OpArguments::maybe_number(const std::string& name) {
  return has(name) ? std::optional(config(name).number()) : std::nullopt;
}
int64_t OpArguments::integer(const std::string& name, int64_t otherwise) {
  return maybe_integer(name).value_or(otherwise);
}
std::optional<int64_t> OpArguments::maybe_integer(const std::string& name) {
  return has(name) ? std::optional(config(name).integer()) : std::nullopt;
}
bool OpArguments::boolean(const std::string& name, bool otherwise) {
  return has(name) ? config(name).boolean() : otherwise;
}
std::string OpArguments::string(const std::string& name, const std::string& otherwise) {
  return has(name) ? config(name).string() : otherwise;
}
std::optional<DType> OpArguments::dtype() {
  return has("dtype") ? std::optional(dtype_from_name(config("dtype").string())) : std::nullopt;
}
std::vector<int64_t> OpArguments::integers(const std::string& name) {
  const Config& value = config(name);
  if (value.is_number()) return {value.integer()};
  if (value.is_list()) return integers_of(value);
  return tensor(name).cast(DType::kInt64).to_vector<int64_t>();
}
std::vector<int> OpArguments::axes_list(const std::string& name) {
  std::vector<int> out;
  if (!has(name)) return out;
  for (const int64_t axis : integers(name)) out.push_back(static_cast<int>(axis));
  return out;
}
keras_ops::Axes OpArguments::axes(const std::string& name, const keras_ops::Axes& otherwise) {
  return has(name) ? keras_ops::Axes(axes_list(name)) : otherwise;
}
keras_ops::Axis OpArguments::axis(const std::string& name) {
  return has(name) ? keras_ops::Axis(axes_list(name).at(0)) : std::nullopt;
}
keras_ops::Pair OpArguments::pair(const std::string& name, int64_t otherwise) {
  if (!has(name)) return otherwise;
  const std::vector<int64_t> values = integers(name);
  return {values.front(), values.back()};
}
keras_ops::SpatialSizes OpArguments::sizes(const std::string& name, int64_t otherwise) {
  if (!has(name)) return otherwise;
  return integers(name);
}

const Config& OpArguments::config(const std::string& name) {
  static const Config kNull;
  asked_.insert(name);
  const Config* found = arguments_.find(name);
  return found == nullptr ? kNull : *found;
}

void OpArguments::finish() const {
  for (const auto& [name, value] : arguments_.entries()) {
    if (!asked_.contains(name)) throw ValueError("argument '", name, "' is not supported");
  }
}

const OpAdapters& op_adapters() {
  static const OpAdapters kAll = [] {
    OpAdapters out;
    for (const auto& part : {math_adapters, reduction_adapters, shape_adapters, selection_adapters,
                             linalg_adapters, nn_adapters, image_adapters}) {
      out.merge(part());
    }
    return out;
  }();
  return kAll;
}

std::string op_name(const Config& record) {
  const Config* module = record.find("module");
  return (module == nullptr ? "" : "image.") + record["name"].string();
}

}  // namespace keel::conformance
