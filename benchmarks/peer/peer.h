// The library that ours is held against: libtorch, if the build has found it. Interfaces in this
// folder are without its headers; *_torch.cc implement them, no_torch.cc where it is missing.
#pragma once

#include <string>

namespace keel::bench {

bool peer_available();
std::string peer_name();  // "libtorch 1.13.1", or "" if there is none
// What the peer's threads are to be; call it before its first work. Also turns its autograd off
// where the work needs none.
void set_peer_threads(int threads);

}  // namespace keel::bench
