// S-144, S-192: messages of all methods of gRPC, and files of warm-up records. The first byte
// chooses the method, or the file, whose records then are the rest of the bytes.
#include <filesystem>
#include <thread>

#include <keel/framework/base/parallel.h>
#include <keel/framework/data/tfrecord.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/functional/functional.h>
#include <keel/savedmodel/saved_model.h>
#include <keel/savedmodel/serving/grpc/grpc_support.h>
#include <keel/savedmodel/serving/grpc/rpc_method.h>

#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace keel;
using namespace keel::serving;

// A repository with version 1 of one model: dense, ragged and string inputs.
struct Backend {
  Backend() {
    const std::string base = fuzz::scratch_file("base", "") + "_rpc";
    std::filesystem::create_directories(base + "/1");
    const Tensor x = layers::input({.shape = {2}, .name = "x"});
    const Tensor word = layers::input({.shape = {}, .dtype = DType::kString, .name = "word"});
    const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
    const Tensor items = layers::EmbedReduce({.input_dim = 10, .output_dim = 2})(seen).tensor();
    save_model(Functional({.inputs = {{"seen", seen}, {"word", word}, {"x", x}},
                           .outputs = {{"echo", layers::Identity({.name = "echo"})(word)},
                                       {"score", layers::Dense({.units = 1})(x)},
                                       {"sum", items}}}),
               base + "/1/model.keras");
    repository.configure({{.name = "m", .base_path = base, .labels = {{"l", 1}}}});
    while (repository.catalog()->models.at("m").versions.empty()) std::this_thread::yield();
    for (const RpcService& service : tfs_services()) add(service);
    add(kserve_service());
  }
  void add(const RpcService& service) {
    methods.insert(methods.end(), service.methods.begin(), service.methods.end());
  }

  ServerMetrics metrics;
  ModelRepository repository{{.poll_seconds = 0}, metrics};
  RpcServerOptions options = {.message_bytes = 1 << 20, .limits = {.rows = 100}};
  RpcBackend backend = {.repository = repository, .metrics = metrics, .ready = [] { return true; }};
  std::vector<RpcMethod> methods;
};

void replay(const Backend& backend, std::string_view record) {
  const std::string path = fuzz::scratch_file("records", "");
  data::TFRecordWriter writer(path);
  writer.write(record);
  writer.close();
  const VersionHandle version = backend.repository.catalog()->models.at("m").latest();
  try {
    grpc_support().replay(*version, path, backend.options.limits);
  } catch (const ValueError&) {
    // It names the record that is wrong.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const bool once = (set_num_workers(1), true);
  static_cast<void>(once);
  static const Backend backend;
  const size_t choice = data[0] % (backend.methods.size() + 1);
  const std::string_view text = fuzz::text_of(data + 1, size - 1);
  if (choice == backend.methods.size()) {
    replay(backend, text);
    return 0;
  }
  const RpcMethod& method = backend.methods[choice];
  RpcRequest call = {.options = backend.options, .backend = backend.backend};
  call.trace.api = method.api.value_or(Api::kRpcPredict);
  const grpc::Slice slice(text.data(), text.size());
  grpc::ByteBuffer request(&slice, 1), response;
  try {
    method.answer(call, request, response);
  } catch (...) {
    const ErrorReport error = current_error();
    fuzz::require(error.code != Code::kInternal, error.message.c_str());
  }
  return 0;
}
