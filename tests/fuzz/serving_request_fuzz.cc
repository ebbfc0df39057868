// S-079, S-192: bodies of predictions. The first byte chooses API, model and whether binary tensors
// follow the JSON; the next two bytes are the size of that JSON. One model has dense, ragged and
// string inputs and a signature for examples, the other a dense input of each dtype and a sparse
// one.
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

constexpr uint8_t kApiBits = 3, kBinaryBit = 4, kKindsBit = 8;
constexpr size_t kPrefix = 3;

VersionHandle load(const std::string& path) {
  return std::make_shared<const ModelVersion>("m", 1, path, std::make_shared<ModelMetrics>());
}

VersionHandle make_kinds() {
  Tensors::Dict inputs, outputs;
  for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64, DType::kUint8,
                      DType::kInt8, DType::kBool, DType::kString}) {
    const std::string name(name_of(dtype));
    const DTypePolicy policy = dtype == DType::kFloat64 ? DTypePolicy(dtype) : DTypePolicy();
    const Tensor x = layers::input({.shape = {1}, .dtype = dtype, .name = name});
    inputs.emplace(name, x);
    outputs.emplace(name, layers::Identity({.name = "same_" + name, .dtype = policy})(x));
  }
  const SparseTensor tags =
      layers::sparse_input({.shape = {6}, .dtype = DType::kInt64, .name = "tags"});
  inputs.emplace("tags", tags);
  outputs.emplace("tags",
                  layers::Identity({.name = "same_tags"})(Tensors(TensorLike(tags))).leaf());
  const std::string path = fuzz::scratch_file("kinds.keras", "");
  save_model(
      Functional({.inputs = Tensors(std::move(inputs)), .outputs = Tensors(std::move(outputs))}),
      path);
  return load(path);
}

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
  return load(path);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kPrefix) return 0;
  static const bool once = (set_num_workers(1), true);
  static_cast<void>(once);
  static const VersionHandle version = make_version(), kinds = make_kinds();
  RequestTrace trace;
  trace.version = (data[0] & kKindsBit) != 0 ? kinds : version;
  trace.api = static_cast<Api>(data[0] & kApiBits);
  const std::string_view body = fuzz::text_of(data + kPrefix, size - kPrefix);
  const RequestLimits limits = {.rows = 100};
  std::string out;
  try {
    if (trace.api == Api::kInfer) {
      const size_t json_size = size_t{data[1]} + (size_t{data[2]} << 8);
      const bool binary = (data[0] & kBinaryBit) != 0 && json_size <= body.size();
      kserve_infer(trace, body, binary ? json_size : std::string_view::npos, limits, out);
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
