// The library that Keel is compared with: libtorch, if the build has found it. The interfaces in
// this folder do not include its headers. *_torch.cc implement them with libtorch, and no_torch.cc
// without it.
#pragma once

#include <string>

namespace keel::bench {

bool peer_available();
std::string peer_name();  // "libtorch 1.13.1", or "" if there is none
// Sets the number of threads of the peer. Call it before any other function of the peer.
void set_peer_threads(int threads);

}  // namespace keel::bench
