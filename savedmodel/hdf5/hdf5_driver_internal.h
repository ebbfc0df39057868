// Functions shared by the file drivers that this library gives to the HDF5 library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <hdf5.h>
#include <iterator>
// Since HDF5 1.14 a separate header declares the driver interface.
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

namespace keel::hdf5_internal {

// Returns the class of a driver without functions. `value` identifies the driver where the library
// asks for it; values below 256 are reserved. `info_bytes` is the size of the driver's part of a
// file access list, which the library copies byte by byte.
inline H5FD_class_t driver_class(const char* name, [[maybe_unused]] int value, size_t info_bytes) {
  H5FD_class_t out = {};
#ifdef H5FD_CLASS_VERSION
  out.version = H5FD_CLASS_VERSION;
  out.value = value;
#endif
  out.name = name;
  out.maxaddr = INT64_MAX;
  out.fc_degree = H5F_CLOSE_STRONG;
  out.fapl_size = info_bytes;
  constexpr H5FD_mem_t kMap[] = H5FD_FLMAP_DICHOTOMY;
  static_assert(std::size(kMap) == H5FD_MEM_NTYPES);
  std::ranges::copy(kMap, out.fl_map);
  return out;
}

}  // namespace keel::hdf5_internal
