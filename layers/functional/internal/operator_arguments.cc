#include <keel/layers/functional/internal/operator_arguments.h>

#include <algorithm>

#include <keel/autodiff/keras_ops/shapes.h>

namespace keel {
namespace {

// Reads nested lists of numbers. Returns the shape and appends the values.
Shape array_of(const Config& config, std::vector<double>& values, bool& integers) {
  if (!config.is_list()) {
    values.push_back(config.is_bool() ? config.boolean() : config.number());
    integers = integers && !config.is_bool() && config.is_integer();
    return {};
  }
  Shape inner;
  for (const Config& item : config.items()) {
    const Shape shape = array_of(item, values, integers);
    if (&item != &config.items()[0] && shape != inner) {
      throw ValueError("the rows of a constant must have the same length");
    }
    inner = shape;
  }
  return Shape{std::ssize(config.items())} + inner;
}

std::optional<int64_t> bound(const Config& slice, const char* name) {
  const Config* const value = slice.find(name);
  return value == nullptr || value->is_null() ? std::optional<int64_t>() : value->integer();
}

bool is_ellipsis(const Config& key) {
  const Config* const tag = key.is_dict() ? key.find("class_name") : nullptr;
  return tag != nullptr && *tag == Config("__ellipsis__");
}

}  // namespace

bool OperatorArguments::has(const char* name) const {
  const Config* const value = values_.find(name);
  return value != nullptr && !value->is_null();
}

bool OperatorArguments::is_given(const char* name) const { return values_.find(name) != nullptr; }

bool OperatorArguments::is_list(const char* name) const {
  return has(name) && values_[name].is_list();
}

const Config& OperatorArguments::at(const char* name) const {
  if (!has(name)) throw ValueError("the argument '", name, "' is missing");
  return values_[name];
}

keras_ops::Operand OperatorArguments::operand(const char* name) const {
  return operand_of(at(name));
}

keras_ops::Operand OperatorArguments::operand_of(const Config& value) const {
  const int64_t number = placeholder_number(value);
  if (number >= 0) {
    if (number >= std::ssize(tensors_)) throw ValueError("there is no input ", number);
    return tensors_[number];
  }
  if (value.is_bool()) return value.boolean();
  if (value.is_integer()) return value.integer();
  if (value.is_number()) return value.number();
  std::vector<double> values;
  bool integers = true;
  const Shape shape = array_of(value, values, integers);
  return Tensor::from(values, shape).cast(integers ? DType::kInt32 : DType::kFloat32);
}

std::vector<Tensor> OperatorArguments::tensors(const char* name) const {
  std::vector<Tensor> out;
  for (const Config& item : at(name).items()) out.push_back(operand_of(item).tensor());
  return out;
}

keras_ops::Axes OperatorArguments::axes(const char* name) const {
  if (!has(name)) return {};
  const Config& value = at(name);
  if (!value.is_list()) return static_cast<int>(value.integer());
  std::vector<int> out;
  for (const Config& item : value.items()) out.push_back(static_cast<int>(item.integer()));
  return out;
}

keras_ops::Axis OperatorArguments::axis(const char* name) const {
  return has(name) ? keras_ops::Axis(static_cast<int>(at(name).integer())) : keras_ops::Axis();
}

int64_t OperatorArguments::integer(const char* name, int64_t otherwise) const {
  return has(name) ? at(name).integer() : otherwise;
}

double OperatorArguments::number(const char* name, double otherwise) const {
  return has(name) ? at(name).number() : otherwise;
}

bool OperatorArguments::flag(const char* name) const { return has(name) && at(name).boolean(); }

std::string OperatorArguments::text(const char* name) const { return at(name).string(); }

std::string OperatorArguments::text(const char* name, const char* otherwise) const {
  return has(name) ? text(name) : otherwise;
}

int OperatorArguments::int_or(const char* name, int otherwise) const {
  return static_cast<int>(integer(name, otherwise));
}

std::optional<double> OperatorArguments::optional_number(const char* name) const {
  return has(name) ? std::optional<double>(at(name).number()) : std::nullopt;
}

std::vector<int64_t> OperatorArguments::numbers(const char* name) const {
  return is_list(name) ? integers(name) : std::vector<int64_t>{at(name).integer()};
}

Config OperatorArguments::value(const char* name) const { return has(name) ? at(name) : Config(); }

std::vector<int64_t> OperatorArguments::integers(const char* name) const {
  std::vector<int64_t> out;
  for (const Config& item : at(name).items()) out.push_back(item.is_null() ? -1 : item.integer());
  return out;
}

DType OperatorArguments::dtype(const char* name) const {
  DType out = DType::kFloat32;
  decode(at(name), out);
  return out;
}

std::optional<DType> OperatorArguments::optional_dtype(const char* name) const {
  return has(name) ? std::optional<DType>(dtype(name)) : std::nullopt;
}

Tensor OperatorArguments::item(const Tensor& x, const char* name) const {
  const Config& given = at(name);
  const Config::List keys = given.is_list() ? given.items() : Config::List{given};
  const auto takes_axis = [](const Config& key) { return !key.is_null() && !is_ellipsis(key); };
  const auto taken = std::ranges::count_if(keys, takes_axis);
  std::vector<keras_ops::Key> key;
  std::vector<int> new_axes;
  int axis = 0;  // of the result
  for (const Config& part : keys) {
    if (part.is_null()) {
      new_axes.push_back(axis++);
    } else if (is_ellipsis(part)) {
      for (auto i = taken; i < x.rank(); ++i, ++axis) key.emplace_back(keras_ops::Slice{});
    } else if (placeholder_number(part) >= 0) {
      throw NotImplementedError(
          "Operator: indexing with a tensor is not supported; use keras.ops.take() in the model");
    } else if (part.is_dict()) {
      key.emplace_back(keras_ops::Slice{
          .start = bound(part, "start"), .stop = bound(part, "stop"), .step = bound(part, "step")});
      ++axis;
    } else {
      key.emplace_back(part.integer());
    }
  }
  Tensor out = key.empty() ? x : keras_ops::get_item(x, key);
  for (const int position : new_axes) out = keras_ops::expand_dims(out, position);
  return out;
}

}  // namespace keel
