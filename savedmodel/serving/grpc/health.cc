#include <keel/savedmodel/serving/grpc/health.h>

#include <algorithm>
#include <array>

#include <keel/savedmodel/serving/grpc/unary.h>

#include "savedmodel/serving/grpc/kserve_messages.pb.h"

namespace keel::serving {
namespace {

using rpc::HealthCheckResponse;

constexpr size_t kMostRequest = 1 << 16;

HealthCheckResponse::ServingStatus status_of(const RpcBackend& backend,
                                             const std::string& service) {
  constexpr std::array<std::string_view, 4> kServices = {"", "tensorflow.serving.PredictionService",
                                                         "tensorflow.serving.ModelService",
                                                         "inference.GRPCInferenceService"};
  if (std::ranges::find(kServices, service) == kServices.end()) {
    return HealthCheckResponse::SERVICE_UNKNOWN;
  }
  return backend.ready() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void check_health(RpcRequest& call, const rpc::HealthCheckRequest& request,
                  HealthCheckResponse& response) {
  response.set_status(status_of(call.backend, request.service()));
  if (response.status() == HealthCheckResponse::SERVICE_UNKNOWN) {
    throw ServeError(Code::kNotFound, "unknown service ", request.service());
  }
}

}  // namespace

RpcService health_service() {
  return {
      .name = "grpc.health.v1.Health",
      .methods = {
          {.path = "/grpc.health.v1.Health/Check",
           .answer = answer_unary<rpc::HealthCheckRequest, HealthCheckResponse, check_health>}}};
}

// One call of Watch. It is deleted when its end was told and no operation is under way.
class HealthWatches::Watch {
 public:
  Watch(HealthWatches& owner, RawService& service, int method, grpc::ServerCompletionQueue& queue)
      : owner_(owner), service_(service), method_(method), queue_(queue) {
    context_.AsyncNotifyWhenDone(ended_.tag());
    service.accept(method, context_, request_, writer_, queue, accepted_);
  }

 private:
  friend class HealthWatches;

  void accepted(bool ok) {
    if (!ok) {  // the server stops; `ended_` will not happen
      delete this;
      return;
    }
    owner_.accept(service_, method_, queue_);
    owner_.begin(*this, request_);
  }
  void written(bool ok) {
    const std::lock_guard lock(owner_.mutex_);
    busy_ = false;
    broken_ = broken_ || !ok;
    owner_.advance(*this);
    owner_.release(*this);
  }
  void ended(bool) {
    const std::lock_guard lock(owner_.mutex_);
    has_ended_ = broken_ = true;
    owner_.release(*this);
  }

  HealthWatches& owner_;
  RawService& service_;
  const int method_;
  grpc::ServerCompletionQueue& queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  MemberEvent<Watch> accepted_{*this, &Watch::accepted}, written_{*this, &Watch::written},
      ended_{*this, &Watch::ended};
  std::string name_;
  int sent_ = -1;           // the status that was sent last
  bool busy_ = false;       // an operation is under way
  bool broken_ = false;     // nothing can be sent
  bool finished_ = false;   // the last status was sent
  bool has_ended_ = false;  // of the whole call
};

void HealthWatches::accept(RawService& service, int method, grpc::ServerCompletionQueue& queue) {
  new Watch(*this, service, method, queue);
}

void HealthWatches::begin(Watch& watch, grpc::ByteBuffer& request) {
  rpc::HealthCheckRequest message;
  const std::lock_guard lock(mutex_);
  watches_.insert(&watch);
  try {
    parse_message(request, kMostRequest, message);
  } catch (const ServeError& error) {
    watch.busy_ = watch.finished_ = true;
    watch.writer_.Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, error.what()),
                         watch.written_.tag());
    return;
  }
  watch.name_ = message.service();
  advance(watch);
}

// Starts the next operation of a watch, if there is one.
void HealthWatches::advance(Watch& watch) {
  if (watch.busy_ || watch.broken_ || watch.finished_) return;
  const HealthCheckResponse::ServingStatus status = status_of(backend_, watch.name_);
  if (status != watch.sent_) {
    HealthCheckResponse response;
    response.set_status(status);
    grpc::ByteBuffer bytes;
    serialize_message(response, bytes);
    watch.sent_ = status;
    watch.busy_ = true;
    watch.writer_.Write(bytes, watch.written_.tag());
  } else if (stopping_) {
    watch.busy_ = watch.finished_ = true;
    watch.writer_.Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server stops"),
                         watch.written_.tag());
  }
}

void HealthWatches::release(Watch& watch) {
  if (!watch.has_ended_ || watch.busy_) return;
  watches_.erase(&watch);
  delete &watch;
}

void HealthWatches::publish() {
  const std::lock_guard lock(mutex_);
  for (Watch* watch : watches_) advance(*watch);
}

void HealthWatches::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  publish();
}

}  // namespace keel::serving
