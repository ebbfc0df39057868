#include "tests/support/keras_archives.h"

#include <keel/framework/config/config.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel::testing_support {

Config config_in(const std::string& path) {
  constexpr int64_t kMaxBytes = 1 << 20;
  return parse_json(ZipFile(path).read("config.json", kMaxBytes));
}

}  // namespace keel::testing_support
