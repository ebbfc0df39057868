#include <keel/framework/sparse_functions.h>

#include <concepts>
#include <type_traits>

namespace keel {
namespace {

template <class T>
void scatter(const SparseTensor& x, Tensor& out) {
  const auto values = x.values.data<T>();
  const auto to = out.mutable_data<T>();
  const int64_t* index = x.indices.data<int64_t>().data();
  const int rank = x.dense_shape.rank();
  for (const T& value : values) {
    int64_t at = 0;
    for (int axis = 0; axis < rank; ++axis) at = at * x.dense_shape.dims()[axis] + index[axis];
    index += rank;
    if constexpr (std::same_as<T, std::string>) {
      to[at] = value;
    } else if constexpr (std::same_as<T, bool>) {
      to[at] = to[at] || value;
    } else if constexpr (std::integral<T>) {
      // Sums wrap around, as those of unsigned integers do.
      using Unsigned = std::make_unsigned_t<T>;
      to[at] = static_cast<T>(static_cast<Unsigned>(to[at]) + static_cast<Unsigned>(value));
    } else {
      to[at] += value;
    }
  }
}

}  // namespace

Tensor to_dense(const SparseTensor& x) {
  const DType dtype = x.values.dtype();
  if (x.values.is_symbolic()) return Tensor::symbolic({.shape = x.dense_shape, .dtype = dtype});
  x.validate("to_dense");
  Tensor out = Tensor::zeros(x.dense_shape, dtype);
  if (dtype == DType::kString) {
    scatter<std::string>(x, out);
  } else if (dtype == DType::kBool) {
    scatter<bool>(x, out);
  } else {
    visit_numeric(dtype, "to_dense", [&]<class T>(const T&) { scatter<T>(x, out); });
  }
  return out;
}

}  // namespace keel
