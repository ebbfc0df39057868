// S-079, S-192: bodies of predictions, of one model with dense, ragged and string inputs. The first
// byte chooses the API, the second the size of the JSON before binary tensors.
#include <keel/framework/base/parallel.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/serving/models/model_version.h>
#include <keel/savedmodel/serving/protocol/kserve_infer.h>
#include <keel/savedmodel/serving/protocol/tfs_examples.h>
#include <keel/savedmodel/serving/protocol/tfs_predict.h>

#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace keel;
using namespace keel::serving;

VersionHandle make_version() {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Tensor word = layers::input({.shape = {}, .dtype = DType::kString, .name = "word"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const Tensor items = layers::EmbedReduce({.input_dim = 10, .output_dim = 2})(seen).tensor();
  const Functional model({.inputs = {{"seen", seen}, {"word", word}, {"x", x}},
                          .outputs = {{"echo", layers::Identity({.name = "echo"})(word)},
                                      {"score", layers::Dense({.units = 1})(x)},
                                      {"sum", items}}});
  const std::string path = fuzz::scratch_file("m.keras", "");
  save_model(
      model, path,
      {.signatures = {{"examples",
                       {{"x", {.feature = data::FixedLenFeature{.shape = {2}}}},
                        {"word", {.feature = data::FixedLenFeature{.dtype = DType::kString}}},
                        {"seen", {.feature = data::RaggedFeature{.dtype = DType::kInt64}}}}}}});
  return std::make_shared<const ModelVersion>("m", 1, path, std::make_shared<ModelMetrics>());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  static const bool once = (set_num_workers(1), true);
  static_cast<void>(once);
  static const VersionHandle version = make_version();
  RequestTrace trace;
  trace.version = version;
  trace.api = static_cast<Api>(data[0] % kApis);
  const std::string_view body = fuzz::text_of(data + 2, size - 2);
  const RequestLimits limits = {.rows = 100};
  std::string out;
  try {
    if (trace.api == Api::kInfer) {
      const bool binary = (data[0] & 4) != 0 && data[1] <= body.size();
      kserve_infer(trace, body, binary ? data[1] : std::string_view::npos, limits, out);
    } else if (trace.api == Api::kPredict) {
      tfs_predict(trace, body, limits, out);
    } else {
      tfs_examples(trace, body, limits, out);
    }
  } catch (...) {
    const ErrorReport error = current_error();
    fuzz::require(error.status != 500, error.message.c_str());
  }
  return 0;
}
