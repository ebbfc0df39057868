// GrpcServer: answers calls on a completion queue.
//
// All threads wait on one queue, and the thread that receives a call also computes and answers it.
// There is one thread more than processors, and further ones, up to `threads`, are started when all
// but one compute: threads that only wait cost latency. One thread always reads: it queues calls
// that no thread can compute, refuses those beyond the limit, and answers calls that compute
// nothing. The thread that calls tick() enforces the time-outs.
#pragma once

#include <atomic>
#include <deque>
#include <grpcpp/server.h>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <keel/savedmodel/serving/grpc/health.h>
#include <keel/savedmodel/serving/grpc/rpc_call.h>
#include <keel/savedmodel/serving/grpc/rpc_method.h>

namespace keel::serving {

// A server on a TCP address, a UNIX socket, or both.
class GrpcServer : public RpcServer {
 public:
  // Listens. Throws IoError that names the address if it cannot.
  GrpcServer(const RpcServerOptions& options, const RpcBackend& backend);
  // Cancels all calls.
  ~GrpcServer() override;

  void start() override;
  int port() const override { return port_; }
  void tick() override;
  void stop_accepting() override;
  int64_t open_calls() const override;

 private:
  class UnaryCall;

  void accept(RawService& service, int method, const RpcMethod& description);
  void handle(UnaryCall& call);
  bool begin(UnaryCall& call);
  void compute(UnaryCall& call);
  void expire(int64_t now);
  grpc::Status answer(UnaryCall& call, grpc::ByteBuffer& response);
  void run();

  const RpcServerOptions options_;
  const RpcBackend backend_;
  std::vector<RpcService> descriptions_;
  std::vector<std::unique_ptr<RawService>> services_;
  HealthWatches watches_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::thread shutdown_;
  std::atomic<bool> is_down_ = false;
  std::atomic<int64_t> calls_ = 0;  // that were received and are not finished

  std::mutex mutex_;                // guards the following
  std::deque<UnaryCall*> waiting_;  // calls that compute when a thread is free
  std::set<UnaryCall*> computing_;
  std::vector<std::thread> threads_;
};

}  // namespace keel::serving
