// S-160, S-192: compressed request bodies. The first byte chooses the format and the limit.
#include <keel/savedmodel/serving/base/inflate.h>
#include <keel/savedmodel/serving/base/serve_error.h>

#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel::serving;
  if (size == 0) return 0;
  const bool gzip = (data[0] & 1) != 0;
  const size_t limit = (data[0] & 2) != 0 ? 100 : 1 << 20;
  try {
    const std::string body = inflate_body(keel::fuzz::text_of(data + 1, size - 1), gzip, limit);
    keel::fuzz::require(body.size() <= limit, "a body over the limit");
  } catch (const ServeError& error) {
    keel::fuzz::require(error.status() == 400 || error.status() == 413, error.what());
  }
  return 0;
}
