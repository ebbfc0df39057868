// S-192: HTTP requests. A request in one piece and in many pieces must be the same. The first byte
// decides how large the pieces are.
#include <keel/savedmodel/serving/http/request_parser.h>

#include "tests/fuzz/fuzz_input.h"

namespace {

using keel::serving::HttpRequest;
using keel::serving::RequestParser;
using State = RequestParser::State;

constexpr keel::serving::HttpLimits kLimits = {
    .header_bytes = 2000, .headers = 20, .body_bytes = 1000};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using keel::fuzz::require;
  if (size == 0) return 0;
  const size_t piece = 1 + data[0] % 16;
  std::string_view left = keel::fuzz::text_of(data + 1, size - 1);
  RequestParser whole(kLimits), split(kLimits);
  while (!left.empty()) {
    const State state = whole.parse(left);
    std::string bytes;
    State other = State::kHeaders;
    size_t used = 0;
    const bool ends = state == State::kComplete || state == State::kFailed;
    while (used < left.size() && other != State::kComplete && other != State::kFailed) {
      const std::string_view next = left.substr(used, piece);
      used += next.size();
      bytes += next;
      other = split.parse(bytes);
      split.drop_read_chunks(bytes);
    }
    // Bytes behind the end of the failing line may decide which error is found first.
    require((state == State::kFailed) == (other == State::kFailed), "another outcome in pieces");
    if (state != State::kComplete) return 0;
    require(other == State::kComplete, "not complete in pieces");
    const HttpRequest a = whole.request(left), b = split.request(bytes);
    require(a.path == b.path && a.body == b.body && a.keep_alive == b.keep_alive,
            "another request in pieces");
    require(a.body.size() <= kLimits.body_bytes, "a body over the limit");
    left.remove_prefix(whole.consumed());
    whole.reset();
    split.reset();
    require(ends, "no end");
  }
  return 0;
}
