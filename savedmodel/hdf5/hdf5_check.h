// A look at all of an HDF5 file's structure before the HDF5 library is let near it.
#pragma once

#include <string>

namespace keel {

// The library (1.10 at least) trusts lengths and addresses inside a file: one flipped byte can make
// it write out of bounds, loop or allocate without end. This walks every group, object header,
// attribute, B-tree and heap of a file and throws IoError, with the address, where something
// points out of the file or does not fit what it belongs to; likewise for what files of models
// never use: objects with two names, shared messages, external data, types other than numbers,
// enumerations and strings.
//
// It knows the oldest of the format's versions, superblock 0 or 1 and object headers of version 1,
// which h5py and Keras write. The metadata of newer ones has checksums of its own and is left to
// the library. Values of datasets are not read, strings excepted.
// Errors call the file `name`.
void check_hdf5_structure(const std::string& path, const std::string& name);

}  // namespace keel
