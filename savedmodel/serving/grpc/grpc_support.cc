#include <keel/savedmodel/serving/grpc/grpc_support.h>

#include <keel/framework/data/tfrecord.h>
#include <keel/savedmodel/serving/grpc/grpc_server.h>
#include <keel/savedmodel/serving/grpc/tfs_methods.h>

namespace keel::serving {
namespace {

constexpr int kMostRecords = 1000;

// Replays the predict requests of a file of PredictionLog records.
void replay_records(const ModelVersion& version, const std::string& file,
                    const RequestLimits& limits) {
  data::TFRecordReader reader(file);
  std::string record;
  for (int number = 1; number <= kMostRecords && reader.next(record); ++number) {
    rpc::PredictionLog log;
    try {
      if (!log.ParseFromString(record)) throw ValueError("the record is no PredictionLog");
      if (!log.has_predict_log()) continue;
      RequestTrace trace;
      trace.version = VersionHandle(std::shared_ptr<const void>(), &version);
      trace.api = Api::kRpcPredict;
      trace.counted = false;
      rpc::PredictResponse response;
      predict_message(trace, log.predict_log().request(), {.limits = limits}, response);
    } catch (const std::exception& error) {
      throw ValueError(file, ", record ", number, ": ", error.what());
    }
  }
}

}  // namespace

RpcSupport grpc_support() {
  return {.make_server =
              [](const RpcServerOptions& options, const RpcBackend& backend) {
                return std::make_unique<GrpcServer>(options, backend);
              },
          .replay = replay_records};
}

}  // namespace keel::serving
