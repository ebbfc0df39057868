// Readers for the bytes, types and shapes of an untrusted HDF5 file. Internal to hdf5_check.cc.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <keel/framework/base/internal/file_part.h>

namespace keel::hdf5_check_internal {

class Bytes;

// A file that is never read beyond its end.
class Input {
 public:
  // Opens the part of a file, which errors call `name`. Throws IoError if it cannot be read or ends
  // before the part.
  Input(const FilePart& part, const std::string& name);
  uint64_t size() const { return size_; }
  void set_end(uint64_t end) { size_ = end; }  // must not be beyond the current end
  // Reads `count` bytes. Throws IoError if they are not all inside the file.
  Bytes at(uint64_t address, uint64_t count);
  void check_range(uint64_t address, uint64_t count) const;  // throws IoError, as at()

 private:
  const std::string path_;
  std::ifstream file_;
  const uint64_t offset_;  // offset of the part in the file
  uint64_t size_ = 0;
};

// A block of the file, consumed from its start. Throws IoError on reading beyond its end.
class Bytes {
 public:
  Bytes(const std::string& path, uint64_t address, std::shared_ptr<const std::string> block)
      : path_(&path), address_(address), block_(std::move(block)), text_(*block_) {}

  uint64_t left() const { return text_.size(); }
  std::string_view text() const { return text_; }  // the bytes not consumed yet
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  void skip(uint64_t count) { take(count); }
  // Consumes `count` bytes and returns them.
  Bytes take(uint64_t count);
  Bytes part(uint64_t offset, uint64_t count) const;  // without consuming it
  // Consumes the signature. Throws IoError if the block does not begin with it.
  void expect(std::string_view signature);

  // Throws IoError with the file, the address and the problem.
  [[noreturn]] void fail(const char* what) const;

 private:
  uint64_t number(int bytes);

  const std::string* path_;  // owned by the Input
  uint64_t address_;         // address of the bytes not consumed yet
  std::shared_ptr<const std::string> block_;
  std::string_view text_;
};

// A type whose encoding has been checked.
struct Datatype {
  uint32_t size = 0;
  bool variable_string = false;
};

// Links of groups. Groups whose names are not ASCII store their links as messages of the object
// header or, if there are more than eight, in a fractal heap indexed by a version 2 B-tree.
//
// Returns the address of the object header that a link message points to. Throws IoError for links
// other than hard links.
uint64_t check_link(Bytes& message);
// Returns the link messages in the heap of a link info message; empty if it has no heap. Throws
// IoError for a structure of another form than the library writes for fewer than a thousand links.
std::vector<Bytes> check_dense_links(Input& in, Bytes& link_info);

// Check the encoding of a type or a shape and return it. Throw IoError if it is invalid.
Datatype check_datatype(Bytes& bytes);
std::vector<uint64_t> check_dataspace(Bytes& bytes);  // the dimensions; {0} for a null space

}  // namespace keel::hdf5_check_internal
