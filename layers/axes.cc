#include <keel/layers/axes.h>

#include <algorithm>

namespace keel {
namespace {

// Flattens nested lists: Keras writes arrays of any rank, such as the mean of Normalization.
void append_numbers(const Config& config, std::vector<double>& out) {
  if (!config.is_list()) {
    out.push_back(config.number());
    return;
  }
  for (const Config& item : config.items()) append_numbers(item, out);
}

template <class T, size_t kSize>
void copy_all(const std::vector<T>& from, std::array<T, kSize>& to, const char* caller) {
  if (from.size() != kSize) {
    throw ValueError(caller, ": requires ", kSize,
                     " elements, one for each axis, or a single number, received ", from.size());
  }
  std::ranges::copy(from, to.begin());
}

}  // namespace

std::vector<int> Axes::normalized(const Shape& shape, const std::string& caller) const {
  if (values_.empty()) throw ValueError(caller, ": axis is empty; pass at least one axis");
  std::vector<int> out;
  for (int axis : values_) {
    if (axis < -shape.rank() || axis >= shape.rank()) {
      throw ValueError(caller, ": axis ", axis, " is out of range for shape ", shape,
                       "; pass an axis in [-rank, rank)");
    }
    out.push_back(shape.normalize_axis(axis));
  }
  // Sorted, so that the result depends on the set of axes only, and equal axes are neighbors.
  std::ranges::sort(out);
  if (std::ranges::adjacent_find(out) != out.end()) {
    throw ValueError(caller, ": an axis is listed twice for shape ", shape,
                     "; list each axis once");
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

template <int N>
Lengths<N>::Lengths(const std::vector<int64_t>& values) {
  copy_all(values, values_, "Lengths");
}

template <int N>
Config encode(const Lengths<N>& lengths) {
  return encode(lengths.values());
}

template <int N>
void decode(const Config& config, Lengths<N>& lengths) {
  if (!config.is_list()) {
    lengths = config.integer();
    return;
  }
  std::vector<int64_t> values;
  decode(config, values);
  lengths = Lengths<N>(values);
}

Config encode(const Padding1D& margins) { return Config::list({margins.before, margins.after}); }

void decode(const Config& config, Padding1D& margins) {
  if (!config.is_list()) {
    margins = config.integer();
    return;
  }
  if (config.items().size() != 2) {
    throw ValueError("Padding1D: must be an integer or a list of two integers, received ",
                     to_json(config));
  }
  margins = Padding1D(config.items()[0].integer(), config.items()[1].integer());
}

template <int N>
Paddings<N>::Paddings(const std::vector<Padding1D>& values) {
  copy_all(values, values_, "Paddings");
}

template <int N>
Config encode(const Paddings<N>& paddings) {
  Config::List out;
  for (int i = 0; i < N; ++i) out.push_back(encode(paddings[i]));
  return Config(std::move(out));
}

template <int N>
void decode(const Config& config, Paddings<N>& paddings) {
  if (!config.is_list()) {
    paddings = config.integer();
    return;
  }
  std::vector<Padding1D> values;
  decode(config, values);
  paddings = Paddings<N>(values);
}

#define KEEL_INSTANTIATE(kind, N)            \
  template class kind<N>;                    \
  template Config encode<N>(const kind<N>&); \
  template void decode<N>(const Config&, kind<N>&);
KEEL_INSTANTIATE(Lengths, 1)
KEEL_INSTANTIATE(Lengths, 2)
KEEL_INSTANTIATE(Lengths, 3)
KEEL_INSTANTIATE(Paddings, 2)
KEEL_INSTANTIATE(Paddings, 3)
#undef KEEL_INSTANTIATE

}  // namespace keel
