// TFRecord files, plain and compressed. The input's first byte says how the rest becomes a file: as
// it is or with good checksums, read as which compression, compressed or not.
#include <algorithm>
#include <array>
#include <cstring>

#include <keel/framework/base/internal/crc32c.h>
#include <keel/framework/data/tfrecord.h>

#include "tests/fuzz/compressed.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/mutate.h"

namespace keel::fuzz {
namespace {

// Gives the records, as far as there are whole ones, the checksums that their readers expect.
void mend_checksums(std::string& bytes) {
  constexpr size_t kHeader = 12, kFooter = 4;
  const auto put = [&](size_t at, std::string_view of) {
    const uint32_t checksum = masked_crc32c(of);
    std::memcpy(&bytes[at], &checksum, sizeof checksum);
  };
  for (size_t at = 0; bytes.size() - at >= kHeader;) {
    uint64_t length = 0;
    std::memcpy(&length, &bytes[at], sizeof length);
    put(at + 8, std::string_view(bytes).substr(at, 8));
    at += kHeader;
    if (bytes.size() - at < kFooter || length > bytes.size() - at - kFooter) return;
    put(at + length, std::string_view(bytes).substr(at, length));
    at += length + kFooter;
  }
}

void read_records(const std::string& path, const data::TFRecordOptions& options) {
  data::TFRecordReader reader(path, options);
  std::string record;
  size_t total = 0;
  while (reader.next(record)) total += record.size();
  require(total < size_t{1} << 30, "records of more bytes than a file can hold");
}

}  // namespace
}  // namespace keel::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel;
  using namespace keel::fuzz;
  if (size == 0) return 0;
  const uint8_t mode = data[0];
  std::string bytes(text_of(data + 1, size - 1));
  if ((mode & 1) != 0) mend_checksums(bytes);
  constexpr std::array<const char*, 3> kTypes = {"", "GZIP", "ZLIB"};
  const size_t type = (mode >> 1) % kTypes.size();
  if ((mode & 16) != 0 && type != 0) bytes = compressed(bytes, type == 1 ? kGzip : kZlib);
  const std::string path = scratch_file("a.tfrecord", bytes);
  const data::TFRecordOptions options = {.compression_type = kTypes[type],
                                         .buffer_size = (mode & 32) != 0 ? 16 : 4096};
  allow_own_errors([&] { read_records(path, options); });
  allow_own_errors([&] {
    for (const Tensors& batch : data::TFRecordDataset(path, options).batch(2)) {
      require(batch.tensor().dim(0) <= 2, "a batch of more than two");
    }
  });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  std::string bytes(keel::fuzz::text_of(data, size));
  keel::fuzz::Random random(seed);
  keel::fuzz::mutate_binary(bytes, max_size, random);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
