// The gRPC server of programs that link it.
#pragma once

#include <keel/savedmodel/serving/rpc_server.h>

namespace keel::serving {

// Returns the functions that serve() needs to serve gRPC.
RpcSupport grpc_support();

}  // namespace keel::serving
