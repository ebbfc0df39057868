#include "tests/fuzz/plain_zip.h"

#include <cstdint>
#include <zlib.h>

#include "tests/fuzz/compressed.h"

namespace keel::fuzz {
namespace {

constexpr size_t kLocalHeader = 30;
constexpr uint64_t kMostBytes = 1 << 20;

uint64_t number(std::string_view bytes, size_t at, int width) {
  uint64_t out = 0;
  for (int i = width - 1; i >= 0; --i) out = out << 8 | static_cast<uint8_t>(bytes[at + i]);
  return out;
}

void append(std::string& out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * i);
}

std::string inflated(std::string_view bytes, size_t size) {
  std::string out(size, '\0');
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return {};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  inflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

// Returns the fields that a local header and an entry of the directory have in common.
std::string fields_of(const ZipEntry& entry, size_t packed) {
  std::string out;
  append(out, 20, 2);
  append(out, 0, 2);
  append(out, entry.deflated ? 8 : 0, 2);
  append(out, 0x00210000, 4);
  append(out, crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), entry.bytes.size()), 4);
  append(out, packed, 4);
  append(out, entry.bytes.size(), 4);
  append(out, entry.name.size(), 2);
  append(out, 0, 2);
  return out;
}

}  // namespace

std::vector<ZipEntry> plain_zip_entries(std::string_view archive) {
  std::vector<ZipEntry> out;
  size_t at = 0;
  while (archive.size() - at >= kLocalHeader && archive.substr(at, 4) == "PK\3\4") {
    const uint64_t method = number(archive, at + 8, 2);
    const uint64_t packed = number(archive, at + 18, 4);
    const uint64_t size = number(archive, at + 22, 4);
    const size_t name = number(archive, at + 26, 2);
    const size_t begin = at + kLocalHeader + name + number(archive, at + 28, 2);
    if (begin > archive.size() || packed > archive.size() - begin || size > kMostBytes) return {};
    ZipEntry entry = {.name = std::string(archive.substr(at + kLocalHeader, name)),
                      .bytes = std::string(archive.substr(begin, packed)),
                      .deflated = method == 8};
    if (entry.deflated) entry.bytes = inflated(entry.bytes, size);
    out.push_back(std::move(entry));
    at = begin + packed;
  }
  return out;
}

std::string plain_zip(const std::vector<ZipEntry>& entries) {
  std::string out, directory;
  for (const ZipEntry& entry : entries) {
    const std::string packed = entry.deflated ? compressed(entry.bytes, -MAX_WBITS) : entry.bytes;
    const std::string fields = fields_of(entry, packed.size());
    directory += "PK\1\2";
    append(directory, 20, 2);
    directory += fields;
    directory.append(10, '\0');  // no comment, the first disk, no attributes
    append(directory, out.size(), 4);
    directory += entry.name;
    out += "PK\3\4" + fields + entry.name + packed;
  }
  const size_t start = out.size();
  out += directory;
  out += "PK\5\6";
  append(out, 0, 4);
  append(out, entries.size(), 2);
  append(out, entries.size(), 2);
  append(out, directory.size(), 4);
  append(out, start, 4);
  append(out, 0, 2);
  return out;
}

}  // namespace keel::fuzz
