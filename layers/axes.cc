#include <keel/layers/axes.h>

#include <algorithm>

namespace keel {
namespace {

void append_numbers(const Config& config, std::vector<double>& out) {
  if (!config.is_list()) {
    out.push_back(config.number());
    return;
  }
  for (const Config& item : config.items()) append_numbers(item, out);
}

}  // namespace

std::vector<int> Axes::normalized(const Shape& shape, const std::string& caller) const {
  if (values_.empty()) throw ValueError(caller, ": axis is empty; pass at least one axis");
  std::vector<int> out;
  for (int axis : values_) {
    if (axis < -shape.rank() || axis >= shape.rank()) {
      throw ValueError(caller, ": axis ", axis, " is out of range for shape ", shape);
    }
    out.push_back(shape.normalize_axis(axis));
  }
  std::ranges::sort(out);
  if (std::ranges::adjacent_find(out) != out.end()) {
    throw ValueError(caller, ": an axis is listed twice for shape ", shape);
  }
  return out;
}

Config encode(const Axes& axes) {
  return axes.is_list() ? encode(axes.values()) : Config(axes.values()[0]);
}

void decode(const Config& config, Axes& axes) {
  if (!config.is_list()) {
    axes = Axes(static_cast<int>(config.integer()));
    return;
  }
  std::vector<int> values;
  decode(config, values);
  axes = Axes(std::move(values));
}

Tensor ScalarOrList::tensor(DType dtype) const {
  const Shape shape = is_list_ ? Shape{static_cast<int64_t>(values_.size())} : Shape{};
  return Tensor::from(values_, shape).cast(dtype);
}

Config encode(const ScalarOrList& numbers) {
  return numbers.is_list() ? encode(numbers.values()) : Config(numbers.values()[0]);
}

void decode(const Config& config, ScalarOrList& numbers) {
  std::vector<double> values;
  append_numbers(config, values);
  numbers = config.is_list() ? ScalarOrList(std::move(values)) : ScalarOrList(values[0]);
}

Config encode(const Length1D& steps) { return Config::list({int64_t{steps}}); }

void decode(const Config& config, Length1D& steps) {
  if (!config.is_list()) {
    steps = config.integer();
    return;
  }
  if (config.items().size() != 1) {
    throw ValueError("expected an integer or a list of one integer, received ", to_json(config));
  }
  steps = config.items()[0].integer();
}

Config encode(const Padding1D& margins) { return Config::list({margins.before, margins.after}); }

void decode(const Config& config, Padding1D& margins) {
  if (!config.is_list()) {
    margins = config.integer();
    return;
  }
  if (config.items().size() != 2) {
    throw ValueError("expected an integer or a list of two integers, received ", to_json(config));
  }
  margins = Padding1D(config.items()[0].integer(), config.items()[1].integer());
}

}  // namespace keel
