// A file driver with which the HDF5 library reads a file that is part of another one, such as an
// entry of an archive.
#pragma once

#include <cstdint>
#include <string>

namespace keel::hdf5_internal {

// Opens the `size` bytes from `offset` on of the file at `path` read-only, as an HDF5 file. Returns
// its id, which is negative on failure. Call it within a LibraryScope.
int64_t open_part(const std::string& path, int64_t offset, int64_t size);

}  // namespace keel::hdf5_internal
