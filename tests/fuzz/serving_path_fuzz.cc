// S-077, S-190, S-192: paths of requests to a server with one model that has no version. The first
// byte chooses the method, the rest up to a line feed is the path, and the rest is the body.
#include <array>
#include <filesystem>

#include <keel/savedmodel/serving/protocol/router.h>

#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace keel::serving;

// A server that is never started; its router answers.
struct Backend {
  Backend() {
    const std::string folder = keel::fuzz::scratch_file("base", "") + "_path";
    std::filesystem::create_directories(folder);
    repository.configure({{.name = "m", .base_path = folder, .labels = {{"l", 1}}}});
  }
  ServerMetrics metrics;
  ModelRepository repository{{.poll_seconds = 0}, metrics};
  Router router{{.limits = {.rows = 100}}, repository, metrics};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using keel::fuzz::require;
  if (size == 0) return 0;
  static Backend backend;
  constexpr std::array<const char*, 5> kMethods = {"GET", "HEAD", "POST", "OPTIONS", "PUT"};
  const std::string_view text = keel::fuzz::text_of(data + 1, size - 1);
  const size_t method = data[0] % kMethods.size(), line = text.find('\n');
  HttpRequest request = {.method = static_cast<HttpMethod>(method),
                         .method_text = kMethods[method],
                         .path = text.substr(0, line),
                         .origin = "http://example.org",
                         .accept = "text/html",
                         .body = line < text.size() ? text.substr(line + 1) : ""};
  HttpResponse response;
  require(backend.router.pin(request) == nullptr, "a version that does not exist");
  backend.router.handle(request, response);
  backend.router.refused(request, 429);
  require(response.status != 500, response.body.c_str());
  // An answer may quote the request.
  require(response.body.find("base_path") == std::string::npos ||
              text.find("base_path") != std::string_view::npos,
          "the base path in an answer");
  return 0;
}
