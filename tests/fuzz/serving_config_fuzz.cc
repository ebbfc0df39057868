// S-192: the configuration files of the server. The first byte chooses the kind of file.
#include <keel/savedmodel/serving/models/server_config.h>

#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel::serving;
  if (size == 0) return 0;
  const std::string text(keel::fuzz::text_of(data + 1, size - 1));
  keel::fuzz::allow_own_errors([&] {
    std::vector<std::string> warnings;
    switch (data[0] % 3) {
      case 0:
        for (const ModelConfig& model : parse_model_configs(text, "f", warnings)) {
          check_name("model name", model.name);
          keel::fuzz::require(!model.base_path.empty(), "no base path");
        }
        break;
      case 1:
        parse_monitoring_config(text, "f");
        break;
      default:
        parse_batching_parameters(text, "f", 1);
        break;
    }
  });
  return 0;
}
