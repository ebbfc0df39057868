// Errors about unavailable memory that report what it was needed for.
#pragma once

#include <cstdint>
#include <new>
#include <string>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/shape.h>

namespace keel {

// Returns fn(). If `fn` throws std::bad_alloc, or if `bytes` is 2^63 or more, throws RuntimeError
// with the name, the shape and the bytes of the table or weight.
template <class Fn>
auto allocate_for(const std::string& name, const Shape& shape, double bytes, const Fn& fn) {
  constexpr double kMost = 0x1p63;
  try {
    if (bytes >= kMost) throw std::bad_alloc();
    return fn();
  } catch (const std::bad_alloc&) {
    const std::string number = bytes < kMost ? str(static_cast<int64_t>(bytes)) : str(bytes);
    throw RuntimeError(name, ": shape ", shape, " requires ", number,
                       " bytes, which are not available; use fewer rows or columns, a smaller "
                       "dtype, or more machines");
  }
}

// Returns the bytes of a tensor of this shape, as a double because the number may exceed 64 bits.
inline double bytes_for(const Shape& shape, double bytes_of_element) {
  double out = bytes_of_element;
  for (const int64_t dim : shape.dims()) out *= static_cast<double>(dim);
  return out;
}

}  // namespace keel
