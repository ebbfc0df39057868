// Bytes of an untrusted HDF5 file, and its encodings of types and shapes. For hdf5_check.cc.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keel::hdf5_check_internal {

class Bytes;

// A file of which no byte behind its end is asked for.
class Input {
 public:
  // Errors call the file `name`. IoError if it cannot be read.
  Input(const std::string& path, const std::string& name);
  uint64_t size() const { return size_; }
  void set_end(uint64_t end) { size_ = end; }  // nearer than it was
  Bytes at(uint64_t address, uint64_t count);
  void check_range(uint64_t address, uint64_t count) const;  // IoError

 private:
  const std::string path_;
  std::ifstream file_;
  uint64_t size_ = 0;
};

// A piece of the file, read from its start on. IoError for reading behind its end.
class Bytes {
 public:
  Bytes(const std::string& path, uint64_t address, std::shared_ptr<const std::string> block)
      : path_(&path), address_(address), block_(std::move(block)), text_(*block_) {}

  uint64_t left() const { return text_.size(); }
  std::string_view text() const { return text_; }  // what is left
  uint8_t u8() { return static_cast<uint8_t>(number(1)); }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  void skip(uint64_t count) { take(count); }
  Bytes take(uint64_t count);
  Bytes part(uint64_t offset, uint64_t count) const;  // not read on
  void expect(std::string_view signature);

  // IoError that names the file, the place and `what` is there.
  [[noreturn]] void fail(const char* what) const;

 private:
  uint64_t number(int bytes);

  const std::string* path_;  // the Input's
  uint64_t address_;         // of what is left
  std::shared_ptr<const std::string> block_;
  std::string_view text_;
};

struct Datatype {
  uint32_t size = 0;
  bool variable_string = false;
};

// Groups with names beyond ASCII keep their links as messages of their object header or, if they
// are more than eight, in a fractal heap that a B-tree of version 2 indexes.
//
// The object header that a link message leads to. IoError for links that are not hard.
uint64_t check_link(Bytes& message);
// Where a link info message has such a heap, the messages in it. IoError for a structure of another
// form than the library writes for fewer than a thousand links.
std::vector<Bytes> check_dense_links(Input& in, Bytes& link_info);

Datatype check_datatype(Bytes& bytes);
std::vector<uint64_t> check_dataspace(Bytes& bytes);  // the dimensions; {0} for a null space

}  // namespace keel::hdf5_check_internal
