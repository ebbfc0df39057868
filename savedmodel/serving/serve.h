// keel serve: the model server as a program.
#pragma once

#include <string>
#include <vector>

#include <keel/savedmodel/serving/rpc_server.h>

namespace keel::serving {

// Runs the server with the flags of a command line until a signal ends it. Returns the exit status:
// 0 after a signal, with all requests answered; 1 if it could not listen or requests were cut off;
// 2 for invalid flags or configuration files, with a line on stderr. `rpc` is null in programs
// without gRPC.
int serve(const std::vector<std::string>& words, const RpcSupport* rpc = nullptr);

}  // namespace keel::serving
