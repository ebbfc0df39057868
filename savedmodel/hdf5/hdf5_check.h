// A structure check of HDF5 files, which runs before the HDF5 library opens them.
#pragma once

#include <string>

#include <keel/framework/base/internal/file_part.h>

namespace keel {

// Checks the structure of an untrusted HDF5 file. The HDF5 library (1.10 at least) trusts lengths
// and addresses in a file: one flipped byte can make it write out of bounds, loop forever or
// allocate without limit. This function walks every group, object header, attribute, B-tree and
// heap. It throws IoError with the address if something points out of the file or is inconsistent
// with the object that it belongs to. It also throws IoError for features that model files never
// use: objects with two names, shared messages, external data, and types other than numbers,
// enumerations and strings.
//
// Only the oldest version of the format is checked, which h5py and Keras write: superblock 0 or 1
// and object headers of version 1. The metadata of newer versions has checksums and is left to the
// library. The values of datasets are not read, except strings. Errors call the file `name`.
void check_hdf5_structure(const FilePart& part, const std::string& name);

}  // namespace keel
