// Zip archives of stored or deflated entries, as far as mutating them needs: checksums are made
// again, so that what an entry holds is looked at.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace keel::fuzz {

struct ZipEntry {
  std::string name;
  std::string bytes;
  bool deflated = false;
};

// Empty if the bytes are no such archive.
std::vector<ZipEntry> plain_zip_entries(std::string_view archive);
std::string plain_zip(const std::vector<ZipEntry>& entries);

}  // namespace keel::fuzz
