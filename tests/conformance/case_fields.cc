#include "tests/conformance/case_fields.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace keel::conformance {
namespace {

void append(const Config& nested, size_t depth, Array& out) {
  if (!nested.is_list()) {
    if (depth != out.shape.size()) throw ValueError("lists of different depths");
    out.values.push_back(nested.number());
    return;
  }
  const auto length = static_cast<int64_t>(nested.items().size());
  if (depth == out.shape.size() && out.values.empty()) out.shape.push_back(length);
  if (depth >= out.shape.size() || out.shape[depth] != length) {
    throw ValueError("lists of different lengths or depths");
  }
  for (const Config& item : nested.items()) append(item, depth + 1, out);
}

std::string text_of(const std::vector<int64_t>& shape) {
  std::ostringstream out;
  for (int64_t d : shape) out << (out.str().empty() ? "(" : ", ") << d;
  return shape.empty() ? "()" : out.str() + ")";
}

std::string text_of(double x) {
  std::ostringstream out;
  out.precision(9);
  out << x;
  return out.str();
}

std::string place(int64_t flat, const std::vector<int64_t>& shape) {
  std::string out;
  for (size_t axis = shape.size(); axis-- > 0;) {
    out = "[" + std::to_string(flat % shape[axis]) + "]" + out;
    flat /= shape[axis];
  }
  return out;
}

}  // namespace

Fields::Fields(const Config& dict, std::string caller) : dict_(dict), caller_(std::move(caller)) {
  if (!dict.is_dict()) throw ValueError(caller_, ": must be an object of named fields");
}

const Config* Fields::find(const std::string& key) {
  asked_.insert(key);
  const Config* found = dict_.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const Config& Fields::need(const std::string& key) {
  const Config* found = find(key);
  if (found == nullptr) throw ValueError(caller_, ": field '", key, "' is missing");
  return *found;
}

double Fields::number(const std::string& key, double otherwise) {
  const Config* found = find(key);
  return found == nullptr ? otherwise : found->number();
}
bool Fields::boolean(const std::string& key, bool otherwise) {
  const Config* found = find(key);
  return found == nullptr ? otherwise : found->boolean();
}
int64_t Fields::integer(const std::string& key, int64_t otherwise) {
  const Config* found = find(key);
  return found == nullptr ? otherwise : found->integer();
}
std::string Fields::string(const std::string& key, const std::string& otherwise) {
  const Config* found = find(key);
  return found == nullptr ? otherwise : found->string();
}

std::vector<std::string> Fields::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : dict_.entries()) out.push_back(key);
  return out;
}

void Fields::finish() const {
  std::string unknown;
  for (const std::string& key : keys()) {
    if (asked_.count(key) == 0) unknown += (unknown.empty() ? "'" : ", '") + key + "'";
  }
  if (!unknown.empty()) throw ValueError(caller_, ": unknown field ", unknown);
}

Array array_of(const Config& nested) {
  Array out;
  append(nested, 0, out);
  return out;
}

Array array_of(const Tensor& tensor) {
  Array out;
  for (int axis = 0; axis < tensor.rank(); ++axis) out.shape.push_back(tensor.dim(axis));
  const Tensor values = tensor.cast(DType::kFloat64);
  out.values = values.to_vector<double>();
  return out;
}

Tensor float_tensor(const Array& array) {
  std::vector<float> values(array.values.begin(), array.values.end());
  return Tensor::from(values, Shape(array.shape));
}

std::vector<int64_t> integers_of(const Config& list) {
  std::vector<int64_t> out;
  for (const Config& item : list.items()) out.push_back(item.integer());
  return out;
}

void Comparison::compare(const std::string& what, const Array& expected, const Array& got) {
  if (expected.shape != got.shape) {
    report(what, "shape " + text_of(expected.shape), "shape " + text_of(got.shape));
    return;
  }
  double largest = 0;
  for (double v : expected.values) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  const double floor = atol_ + of_largest_ * largest;
  size_t different = 0;
  constexpr size_t kShown = 4;
  for (size_t i = 0; i < expected.values.size(); ++i) {
    const double a = expected.values[i], b = got.values[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::isfinite(a) && std::abs(a - b) <= floor + rtol_ * std::abs(a)) continue;
    if (++different > kShown) continue;
    report(what + place(static_cast<int64_t>(i), expected.shape), text_of(a), text_of(b));
  }
  if (different > kShown) {
    differences_ += "  " + what + ": " + std::to_string(different - kShown) + " more\n";
  }
}

void Comparison::compare(const std::string& what, int64_t expected, int64_t got) {
  if (expected != got) report(what, std::to_string(expected), std::to_string(got));
}

void Comparison::compare(const std::string& what, double expected, double got) {
  compare(what, Array{.values = {expected}}, Array{.values = {got}});
}

void Comparison::report(const std::string& what, const std::string& expected,
                        const std::string& got) {
  differences_ += "  " + what + ": expected " + expected + ", got " + got + "\n";
}

}  // namespace keel::conformance
