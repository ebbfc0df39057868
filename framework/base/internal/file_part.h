// FilePart: a range of bytes of a file.
#pragma once

#include <cstdint>
#include <string>

namespace keel {

// The bytes [offset, offset + bytes) of a file, such as a stored entry of an archive.
struct FilePart {
  std::string path = {};
  int64_t offset = 0;
  int64_t bytes = -1;  // -1: up to the end of the file
};

}  // namespace keel
