// RpcServer: the interface of the gRPC server. Only programs that link gRPC have one; they pass it
// to serve(), so that the libraries do not depend on gRPC.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <keel/savedmodel/serving/models/model_repository.h>
#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Options of an RpcServer.
struct RpcServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;                  // 0: none, -1: a free port
  std::string socket_path = {};  // of a UNIX socket; empty: none
  int threads = 2;               // that read, compute and answer
  int64_t message_bytes = 64 << 20;
  int64_t timeout_ms = 30000;  // from request to answer; 0: none
  int64_t max_pending = 1024;  // requests read but not yet answered, with those of REST
  bool health = true;          // serve grpc.health.v1
  bool tensor_content = false;
  bool log_requests = false;
  RequestLimits limits = {};
};

// What an RpcServer serves. The references must outlive it.
struct RpcBackend {
  const ModelRepository& repository;
  ServerMetrics& metrics;
  std::function<bool()> ready;
};

// A gRPC server.
class RpcServer {
 public:
  virtual ~RpcServer() = default;
  // Starts the threads. Clients can connect before, and wait.
  virtual void start() = 0;
  // Returns the port that is listened on, or 0.
  virtual int port() const = 0;
  // Enforces time-outs and tells watchers of changes. Call it several times a second.
  virtual void tick() = 0;
  // Stops listening; calls that have begun are finished.
  virtual void stop_accepting() = 0;
  // Returns the number of calls that are not finished; at least 1 until a stop is complete.
  virtual int64_t open_calls() const = 0;
};

// The functions of a program with gRPC.
struct RpcSupport {
  // Makes a server that listens. Throws IoError that names the address if it cannot.
  std::function<std::unique_ptr<RpcServer>(const RpcServerOptions&, const RpcBackend&)> make_server;
  // Runs the requests of a file of TensorFlow Serving's warm-up records on a version. Throws
  // ValueError that names the record if one fails.
  std::function<void(const ModelVersion&, const std::string&, const RequestLimits&)> replay;
};

}  // namespace keel::serving
