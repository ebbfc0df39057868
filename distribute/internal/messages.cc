#include <keel/distribute/internal/messages.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

namespace keel::distribute {
namespace {

constexpr int64_t kKeptBytes = int64_t{64} << 20;  // excess up to which a buffer is not shrunk

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

std::byte* Buffer::resize(int64_t bytes) {
  if (bytes > capacity_ || capacity_ > 4 * bytes + kKeptBytes) {
    data_.reset();
    data_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    capacity_ = bytes;
  }
  return data_.get();
}

int64_t pack(std::string_view what, const ProcessGroup::Parts& parts, Buffer& out) {
  Header header{.parts = static_cast<int64_t>(parts.size()),
                .hash = std::hash<std::string_view>()(what)};
  what.copy(header.what.data(), header.what.size() - 1);
  std::vector<int64_t> sizes;
  const int64_t begin = aligned(sizeof(Header) + parts.size() * sizeof(int64_t));
  header.bytes = begin;
  for (const Bytes& part : parts) {
    sizes.push_back(static_cast<int64_t>(part.size()));
    header.bytes += aligned(sizes.back());
  }
  std::byte* const bytes = out.resize(header.bytes);
  std::memcpy(bytes, &header, sizeof(Header));
  if (!sizes.empty()) {
    std::memcpy(bytes + sizeof(Header), sizes.data(), sizes.size() * sizeof(int64_t));
  }
  std::byte* at = bytes + begin;
  for (const Bytes& part : parts) {
    std::ranges::copy(part, at);
    at += aligned(static_cast<int64_t>(part.size()));
  }
  return header.bytes;
}

ProcessGroup::Parts unpack(const std::byte* bytes) {
  Header header;
  std::memcpy(&header, bytes, sizeof(Header));
  ProcessGroup::Parts parts;
  const std::byte* at = bytes + aligned(sizeof(Header) + header.parts * sizeof(int64_t));
  for (int64_t i = 0; i < header.parts; ++i) {
    int64_t size = 0;
    std::memcpy(&size, bytes + sizeof(Header) + i * sizeof(int64_t), sizeof(size));
    parts.emplace_back(at, size);
    at += aligned(size);
  }
  return parts;
}

}  // namespace keel::distribute
