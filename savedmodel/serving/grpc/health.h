// The service grpc.health.v1.Health.
#pragma once

#include <mutex>
#include <set>
#include <string>

#include <keel/savedmodel/serving/grpc/rpc_call.h>
#include <keel/savedmodel/serving/grpc/rpc_method.h>

namespace keel::serving {

// Returns the service with its unary method.
RpcService health_service();

// The calls that watch the readiness of the server. Thread safe.
class HealthWatches {
 public:
  explicit HealthWatches(const RpcBackend& backend) : backend_(backend) {}

  // Waits for the next watch.
  void accept(RawService& service, int method, grpc::ServerCompletionQueue& queue);
  // Tells the watches whose status has changed.
  void publish();
  // Ends all watches, and those that come later.
  void stop();

 private:
  class Watch;

  void begin(Watch& watch, grpc::ByteBuffer& request);
  void advance(Watch& watch);
  void release(Watch& watch);

  const RpcBackend& backend_;
  std::mutex mutex_;  // guards the following and the state of all watches
  std::set<Watch*> watches_;
  bool stopping_ = false;
};

}  // namespace keel::serving
