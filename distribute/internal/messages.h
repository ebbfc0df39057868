// The format of the messages that processes exchange: a header, the sizes of the parts, the parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <keel/distribute/process_group.h>

namespace keel::distribute {

constexpr int64_t kAlignment = 16;  // alignment of the header and of each part, in bytes

// The header of a message from one process to another. The sizes of the parts follow it.
struct Header {
  int64_t bytes = 0;  // size of the whole message, including this header
  int64_t parts = 0;
  uint64_t hash = 0;  // hash of the complete label, which `what` may truncate
  std::array<char, 104> what = {};
};
static_assert(sizeof(Header) % kAlignment == 0);

// An uninitialized buffer that is reused by later exchanges unless it is far too large.
class Buffer {
 public:
  // Returns memory of this size, whose values are undefined.
  std::byte* resize(int64_t bytes);
  std::byte* data() { return data_.get(); }

 private:
  std::unique_ptr<std::byte[]> data_;
  int64_t capacity_ = 0;
};

// Stores a message, header first, in `out` and returns its size. All parts are aligned.
int64_t pack(std::string_view what, const ProcessGroup::Parts& parts, Buffer& out);

// Returns the parts of a message. They refer to `bytes`.
ProcessGroup::Parts unpack(const std::byte* bytes);

}  // namespace keel::distribute
