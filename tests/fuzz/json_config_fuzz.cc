// JSON text, and models and layers that it describes.
#include <algorithm>

#include <keel/framework/base/internal/allocator.h>
#include <keel/framework/config/config.h>
#include <keel/layers/registry.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>

#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/run_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace keel;
  using namespace keel::fuzz;
  allow_own_errors([&] {
    const Config config = parse_json(std::string(text_of(data, size)));
    const std::string json = to_json(config);
    require(to_json(parse_json(json)) == json, "JSON that is another when read again");
    if (!config.is_dict()) return;
    naming_file("input", "config", [&] {
      const MemoryLimit limit(kTensorBytes);
      const ModelHandle model = model_from_keras(config);
      if (const Config* const stored = config.find("compile_config")) {
        const Config compiled = from_training_config(*stored);
        if (!compiled.is_null()) model->compile_from_config(compiled);
      }
      to_json(layers::serialize(*model));
      run_model(model);
    });
  });
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  std::string text(keel::fuzz::text_of(data, size));
  keel::fuzz::Random random(seed);
  keel::fuzz::mutate_json(text, max_size, random);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
