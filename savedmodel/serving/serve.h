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
//
// `command` starts a program that calls serve() with the words that follow it, and with the same
// `rpc`. If it is not empty, the server runs it to load a new version for a trial, while others are
// available, before it loads the version itself.
int serve(const std::vector<std::string>& words, const RpcSupport* rpc = nullptr,
          const std::vector<std::string>& command = {});

}  // namespace keel::serving
