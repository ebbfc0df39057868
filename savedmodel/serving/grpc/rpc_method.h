// The methods of the services: functions from a request message to a response message.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <optional>
#include <string>
#include <vector>

#include <keel/savedmodel/serving/rpc_server.h>

namespace keel::serving {

// A call that is being answered.
struct RpcRequest {
  const RpcServerOptions& options;
  const RpcBackend& backend;
  RequestTrace trace = {};
  std::string model = {};  // the name in the request, for the metrics
};

// A unary method.
struct RpcMethod {
  const char* path = nullptr;  // "/package.Service/Method"
  // Of a method that computes predictions, which are counted and limited in number.
  std::optional<Api> api = {};
  // Parses the request and serializes the response. Throws what current_error() describes.
  void (*answer)(RpcRequest& call, grpc::ByteBuffer& request, grpc::ByteBuffer& response) = nullptr;
};

// A service and its unary methods.
struct RpcService {
  const char* name = nullptr;
  std::vector<RpcMethod> methods = {};
};

// The services of TensorFlow Serving and of KServe v2.
std::vector<RpcService> tfs_services();
RpcService kserve_service();

}  // namespace keel::serving
