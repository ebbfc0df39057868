// DType: the element types that a Tensor can hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <keel/framework/base/errors.h>

namespace keel {

// The element type of a tensor. kString and kInt8 support no arithmetic. kString is the input of
// StringLookup and Hashing, and a column type of files. kInt8 holds the codes of quantized tables;
// int8 tensors can be copied, cast, gathered, compared for equality and written to files.
enum class DType : uint8_t { kFloat32, kFloat64, kInt32, kInt64, kBool, kUint8, kString, kInt8 };

// Returns the number of bytes per element.
size_t size_of(DType dtype);
// Returns the Keras name of the dtype: "float32", "float64", "int32", ...
std::string_view name_of(DType dtype);
// Returns the dtype of a name. Throws ValueError if the name is unknown.
DType dtype_from_name(std::string_view name);
// Returns true for float32 and float64.
inline bool is_floating(DType d) { return d == DType::kFloat32 || d == DType::kFloat64; }
// Returns true for the integer types that support arithmetic (int32, int64 and uint8).
inline bool is_integer(DType d) {
  return d == DType::kInt32 || d == DType::kInt64 || d == DType::kUint8;
}
std::ostream& operator<<(std::ostream& out, DType dtype);

// Maps a C++ element type to its DType: DTypeOf<float>::kValue is DType::kFloat32. Has no kValue
// for types that a Tensor cannot hold.
template <class T>
struct DTypeOf {};

namespace internal {
template <DType kDType>
struct DTypeConstant {
  static constexpr DType kValue = kDType;
};
}  // namespace internal

template <>
struct DTypeOf<float> : internal::DTypeConstant<DType::kFloat32> {};
template <>
struct DTypeOf<double> : internal::DTypeConstant<DType::kFloat64> {};
template <>
struct DTypeOf<int32_t> : internal::DTypeConstant<DType::kInt32> {};
template <>
struct DTypeOf<int64_t> : internal::DTypeConstant<DType::kInt64> {};
template <>
struct DTypeOf<bool> : internal::DTypeConstant<DType::kBool> {};
template <>
struct DTypeOf<uint8_t> : internal::DTypeConstant<DType::kUint8> {};
template <>
struct DTypeOf<int8_t> : internal::DTypeConstant<DType::kInt8> {};
template <>
struct DTypeOf<std::string> : internal::DTypeConstant<DType::kString> {};

// A C++ type that a Tensor can hold.
template <class T>
concept Element = requires { DTypeOf<T>::kValue; };

// Calls fn(T{}) with the C++ type of float32 or float64. Throws TypeError, with `caller` in the
// message, for other dtypes.
template <class Fn>
decltype(auto) visit_floating(DType dtype, const char* caller, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    default:
      throw TypeError(caller, ": requires float32 or float64, received ", dtype);
  }
}

// Calls fn(T{}) with the C++ type of a dtype that supports arithmetic. Throws TypeError, with
// `caller` in the message, for bool, int8 and string.
template <class Fn>
decltype(auto) visit_numeric(DType dtype, const char* caller, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    case DType::kInt32:
      return fn(int32_t{});
    case DType::kInt64:
      return fn(int64_t{});
    case DType::kUint8:
      return fn(uint8_t{});
    default:
      throw TypeError(caller, ": requires a numeric dtype, received ", dtype);
  }
}

// Calls fn(T{}) with the C++ type of any dtype.
template <class Fn>
decltype(auto) visit_any(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    case DType::kInt32:
      return fn(int32_t{});
    case DType::kInt64:
      return fn(int64_t{});
    case DType::kBool:
      return fn(bool{});
    case DType::kUint8:
      return fn(uint8_t{});
    case DType::kInt8:
      return fn(int8_t{});
    case DType::kString:
      break;
  }
  return fn(std::string{});
}

}  // namespace keel
