#include <ATen/Parallel.h>
#include <string_view>
#include <torch/version.h>

#include "benchmarks/peer/peer.h"

namespace keel::bench {

bool peer_available() { return true; }

std::string peer_name() {
  // Distributions append a suffix: "1.13.1+debian".
  const std::string_view version = TORCH_VERSION;
  return "libtorch " + std::string(version.substr(0, version.find('+')));
}

void set_peer_threads(int threads) { at::set_num_threads(threads); }

}  // namespace keel::bench
