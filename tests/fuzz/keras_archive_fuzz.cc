// .keras archives: the zip around them, and a configuration and weights that do not fit each other.
#include <algorithm>

#include <keel/savedmodel/keras/internal/keras_archive.h>
#include <keel/savedmodel/keras/internal/signature_files.h>

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/models.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/plain_zip.h"
#include "tests/fuzz/run_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel;
  using namespace keel::fuzz;
  const std::string path = scratch_file("a.keras", text_of(data, size));
  allow_own_errors([&] { run_model(read_keras_archive(path, {.compile = true})); });
  allow_own_errors([&] { read_feature_space_archive(path); });
  allow_own_errors([&] { read_signature_specs(path); });
  allow_own_errors([&] { read_archive_weights(path, *small_model(), size % 2 == 0); });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  using namespace keel::fuzz;
  std::string bytes(text_of(data, size));
  Random random(seed);
  std::vector<ZipEntry> entries;
  if (below(random, 8) != 0) entries = plain_zip_entries(bytes);
  if (!entries.empty()) {
    ZipEntry& entry = entries[below(random, entries.size())];
    if (entry.name.ends_with(".json")) {
      mutate_json(entry.bytes, max_size, random);
    } else {
      mutate_binary(entry.bytes, max_size, random);
    }
    bytes = plain_zip(entries);
  } else {
    mutate_binary(bytes, max_size, random);
  }
  if (bytes.size() > max_size) bytes.resize(max_size);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
