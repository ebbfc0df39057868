#include <keel/layers/utils/arrays.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>

#include <keel/framework/exact_cast.h>

namespace keel::utils {
namespace {

// Returns the norm of `count` elements, `step` apart. The order is not 0.
template <class T>
double norm_of(const T* x, int64_t count, int64_t step, double order) {
  double largest = 0, smallest = INFINITY, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::abs(static_cast<double>(x[i * step]));
    largest = std::max(largest, value);
    smallest = std::min(smallest, value);
    sum += order == 1 ? value : order == 2 ? value * value : std::pow(value, order);
  }
  if (order == INFINITY) return largest;
  if (order == -INFINITY) return smallest;
  if (order == 1) return sum;
  return order == 2 ? std::sqrt(sum) : std::pow(sum, 1 / order);
}

template <class T>
int64_t count_nonzero(const T* x, int64_t count, int64_t step) {
  int64_t out = 0;
  for (int64_t i = 0; i < count; ++i) out += x[i * step] != 0 ? 1 : 0;
  return out;
}

template <class T>
void normalize_in_place(std::span<T> x, const Shape& shape, int axis, double order) {
  if (x.empty()) return;
  const int64_t count = shape[axis];
  const int64_t step = shape.slice(axis + 1, shape.rank()).size();
  const int64_t blocks = std::ssize(x) / (count * step);
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t column = 0; column < step; ++column) {
      T* const first = x.data() + block * count * step + column;
      const double norm = order == 0 ? static_cast<double>(count_nonzero(first, count, step))
                                     : norm_of(first, count, step, order);
      if (norm == 0) continue;
      for (int64_t i = 0; i < count; ++i) {
        first[i * step] = static_cast<T>(static_cast<double>(first[i * step]) / norm);
      }
    }
  }
}

// Returns true for "pre".
bool is_pre(const std::string& value, const char* option) {
  if (value != "pre" && value != "post") {
    throw ValueError("pad_sequences: ", option, " must be 'pre' or 'post', received '", value, "'");
  }
  return value == "pre";
}

template <class T>
T padding_value(const std::variant<double, std::string>& value) {
  if constexpr (std::same_as<T, std::string>) {
    // The default number stands for the empty string.
    const auto* const text = std::get_if<std::string>(&value);
    return text == nullptr ? std::string() : *text;
  } else {
    const double number = std::get<double>(value);
    if constexpr (std::integral<T> && !std::same_as<T, bool>) {
      using Limits = std::numeric_limits<T>;
      const double whole = std::trunc(number);
      if (!(whole >= static_cast<double>(Limits::min()) &&
            whole < std::ldexp(1.0, Limits::digits))) {
        throw ValueError("pad_sequences: value ", number, " does not fit dtype; change either");
      }
    }
    return static_cast<T>(number);
  }
}

void check_dtypes(const Tensor& values, const PadSequencesOptions& options) {
  const bool strings = options.dtype == DType::kString;
  const auto* const number = std::get_if<double>(&options.value);
  const bool fits = strings ? number == nullptr || *number == 0 : number != nullptr;
  if ((values.dtype() == DType::kString) != strings || !fits) {
    throw TypeError("pad_sequences: sequences of ", values.dtype(), " cannot be padded to dtype ",
                    options.dtype, " with a ", number == nullptr ? "string" : "number",
                    "; set dtype and value");
  }
}

template <class T>
Tensor padded(const RaggedTensor& sequences, int64_t length, const PadSequencesOptions& options) {
  const bool pads_first = is_pre(options.padding, "padding");
  const bool drops_first = is_pre(options.truncating, "truncating");
  const Tensor values = sequences.values.dtype() == options.dtype
                            ? sequences.values
                            : exact_cast("pad_sequences", sequences.values, options.dtype);
  const Shape step = values.shape().slice(1, values.rank());
  const int64_t width = step.size();
  Tensor out =
      Tensor::full(Shape{sequences.rows(), length} + step, padding_value<T>(options.value));
  const auto from = values.data<T>();
  const auto splits = sequences.row_splits.data<int64_t>();
  auto to = out.mutable_data<T>();
  for (int64_t row = 0; row < sequences.rows(); ++row) {
    const int64_t steps = splits[row + 1] - splits[row];
    const int64_t kept = std::min(steps, length);
    const int64_t first = drops_first ? splits[row + 1] - kept : splits[row];
    const int64_t at = row * length + (pads_first ? length - kept : 0);
    std::ranges::copy(from.subspan(first * width, kept * width), to.begin() + at * width);
  }
  return out;
}

}  // namespace

Tensor to_categorical(const Tensor& x, std::optional<int64_t> num_classes) {
  const Tensor classes = integer_ids("to_categorical", x);
  const auto values = classes.data<int64_t>();
  if (!num_classes) {
    if (values.empty()) throw ValueError("to_categorical: x is empty; pass num_classes");
    const int64_t last = std::ranges::max(values);
    if (last == std::numeric_limits<int64_t>::max()) {
      throw ValueError("to_categorical: class ", last, " is too large");
    }
    num_classes = last + 1;
  }
  for (const int64_t value : values) {
    if (value < 0 || value >= *num_classes) {
      throw ValueError("to_categorical: classes must be in [0, ", *num_classes, "), received ",
                       value);
    }
  }
  const bool column = x.rank() > 1 && x.dim(-1) == 1;
  Tensor out = Tensor::zeros((column ? x.shape().drop_last() : x.shape()) + Shape{*num_classes});
  float* to = out.mutable_data<float>().data();
  for (const int64_t value : values) {
    to[value] = 1;
    to += *num_classes;
  }
  return out;
}

Tensor normalize(const Tensor& x, int axis, double order) {
  const Shape& shape = x.shape();
  const int from_zero = shape.normalize_axis(axis);
  const DType dtype = x.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Tensor out = x.dtype() == dtype ? x.clone() : x.cast(dtype);
  if (dtype == DType::kFloat64) {
    normalize_in_place(out.mutable_data<double>(), shape, from_zero, order);
  } else {
    normalize_in_place(out.mutable_data<float>(), shape, from_zero, order);
  }
  return out;
}

Tensor pad_sequences(const RaggedTensor& sequences, const PadSequencesOptions& options) {
  sequences.validate("pad_sequences");
  check_dtypes(sequences.values, options);
  int64_t length = 0;
  const auto splits = sequences.row_splits.data<int64_t>();
  for (int64_t row = 0; row < sequences.rows(); ++row) {
    length = std::max(length, splits[row + 1] - splits[row]);
  }
  length = options.maxlen.value_or(length);
  if (length < 0) throw ValueError("pad_sequences: maxlen must not be negative, received ", length);
  if (options.dtype == DType::kString) return padded<std::string>(sequences, length, options);
  return visit_numeric(options.dtype, "pad_sequences", [&]<class T>(const T&) -> Tensor {
    return padded<T>(sequences, length, options);
  });
}

}  // namespace keel::utils
