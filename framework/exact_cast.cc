#include <keel/framework/exact_cast.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/text.h>

namespace keel {
namespace {

// Converts a number, or clears `exact` if To does not have it. Comparisons with NaN are false. The
// upper bound of a float is the power of two above the largest To, which every float type has.
template <class To, class From>
To converted(From x, bool& exact) {
  if constexpr (std::floating_point<From>) {
    constexpr From kAbove =
        From{2} * static_cast<From>(To{1} << (std::numeric_limits<To>::digits - 1));
    const bool fits = x >= static_cast<From>(std::numeric_limits<To>::min()) && x < kAbove;
    const To out = static_cast<To>(fits ? x : From{0});
    exact &= fits && static_cast<From>(out) == x;
    return out;
  } else {
    if constexpr (!std::same_as<From, bool>) exact &= std::in_range<To>(x);
    return static_cast<To>(x);
  }
}

// Returns number_text() without the sign of a NaN.
template <class T>
std::string text_of(T number) {
  if constexpr (std::floating_point<T>) {
    if (std::isnan(number)) return "nan";
  }
  return number_text(number);
}

// Returns the row of the value at a position.
int64_t row_of(const TensorLike& tensor, int64_t position) {
  switch (tensor.layout()) {
    case Layout::kSparse:
      return tensor.sparse().indices.data<int64_t>()[position * tensor.sparse().dense_shape.rank()];
    case Layout::kRagged: {
      const Shape& shape = tensor.ragged().values.shape();
      const auto splits = tensor.ragged().row_splits.data<int64_t>();
      const int64_t value = position / std::max<int64_t>(1, shape.slice(1, shape.rank()).size());
      return std::ranges::upper_bound(splits, value) - splits.begin() - 1;
    }
    case Layout::kDense:
      break;
  }
  const Shape& shape = tensor.tensor().shape();
  return shape.rank() == 0 ? 0 : position / shape.slice(1, shape.rank()).size();
}

struct Inexact {
  int64_t row = 0;
  std::string number;
};

// Converts the values of `tensor` to To. Returns where the first number is that To does not have.
template <class To>
std::optional<Inexact> convert(const TensorLike& tensor, const Tensor& values, Tensor& out) {
  return visit_any(values.dtype(), [&]<class From>(const From&) -> std::optional<Inexact> {
    if constexpr (std::same_as<From, std::string>) {
      return {};
    } else {
      const auto from = values.data<From>();
      bool exact = true;
      std::ranges::transform(from, out.mutable_data<To>().begin(),
                             [&](From x) { return converted<To>(x, exact); });
      if (exact) return {};
      const auto at = std::ranges::find_if(from, [](From x) {
        bool is_exact = true;
        converted<To>(x, is_exact);
        return !is_exact;
      });
      const int64_t position = at - from.begin();
      return Inexact{.row = row_of(tensor, position), .number = text_of(+*at)};
    }
  });
}

TensorLike with_values(const TensorLike& tensor, Tensor values) {
  switch (tensor.layout()) {
    case Layout::kSparse:
      return SparseTensor{.indices = tensor.sparse().indices,
                          .values = std::move(values),
                          .dense_shape = tensor.sparse().dense_shape};
    case Layout::kRagged:
      return RaggedTensor{.values = std::move(values), .row_splits = tensor.ragged().row_splits};
    case Layout::kDense:
      break;
  }
  return values;
}

// Returns the converted tensor, or an empty handle in `out` and where the first other number is.
std::optional<Inexact> convert_to(DType dtype, const TensorLike& tensor, TensorLike& out) {
  const Tensor values = tensor.values().contiguous();
  if (values.dtype() == dtype) {
    out = tensor;
    return {};
  }
  if (is_floating(dtype) || dtype == DType::kBool || dtype == DType::kString ||
      values.dtype() == DType::kString) {
    out = with_values(tensor, values.cast(dtype));
    return {};
  }
  Tensor to = Tensor::uninitialized(values.shape(), dtype);
  const auto found = visit_any(dtype, [&]<class To>(const To&) -> std::optional<Inexact> {
    if constexpr (std::integral<To> && !std::same_as<To, bool>) {
      return convert<To>(tensor, values, to);
    } else {
      return {};
    }
  });
  if (!found) out = with_values(tensor, std::move(to));
  return found;
}

}  // namespace

TensorLike exact_cast(const std::string& caller, const TensorLike& numbers, DType dtype) {
  TensorLike out = Tensor();
  if (const auto bad = convert_to(dtype, numbers, out)) {
    throw ValueError(caller, ": the value in row ", bad->row, " is ", bad->number, ", which ",
                     dtype, " does not have; pass an integer in its range");
  }
  return out;
}

Tensor exact_cast(const std::string& caller, const Tensor& numbers, DType dtype) {
  return exact_cast(caller, TensorLike(numbers), dtype).tensor();
}

TensorLike integer_ids(const std::string& caller, const TensorLike& ids) {
  TensorLike out = Tensor();
  if (const auto bad = convert_to(DType::kInt64, ids, out)) {
    throw InvalidIdError(caller, ": the id in row ", bad->row, " is ", bad->number,
                         "; ids must be integers");
  }
  return out;
}

Tensor integer_ids(const std::string& caller, const Tensor& ids) {
  return integer_ids(caller, TensorLike(ids)).tensor();
}

}  // namespace keel
