// Errors for memory that is not available, with what it was for.
#pragma once

#include <cstdint>
#include <new>
#include <string>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/shape.h>

namespace keel {

// Returns fn(). RuntimeError, with the name, the shape and the bytes of a table or a weight, if fn
// finds no memory for it.
template <class Fn>
auto allocate_for(const std::string& name, const Shape& shape, double bytes, const Fn& fn) {
  constexpr double kMost = 0x1p63;
  try {
    if (bytes >= kMost) throw std::bad_alloc();
    return fn();
  } catch (const std::bad_alloc&) {
    const std::string number = bytes < kMost ? str(static_cast<int64_t>(bytes)) : str(bytes);
    throw RuntimeError(name, ": of shape ", shape, ", needs ", number,
                       " bytes, which are not available; use fewer rows or columns, a smaller "
                       "dtype, or more machines");
  }
}

// Bytes of so many elements for each element of the shape, which may be more than 64 bits tell.
inline double bytes_for(const Shape& shape, double bytes_of_element) {
  double out = bytes_of_element;
  for (const int64_t dim : shape.dims()) out *= static_cast<double>(dim);
  return out;
}

}  // namespace keel
