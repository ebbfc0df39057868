// SkipInitialization: makes large weights without values, for code that assigns all of them next.
#pragma once

#include <cstdint>

namespace keel {

// While an object is alive, initializers on this thread return zeros that take the memory of one
// row for tensors of rank 2 and more and of at least 1 MiB. They draw no random numbers for these.
// Loading a model whose tables are mapped thus neither computes nor allocates them first.
class SkipInitialization {
 public:
  SkipInitialization();
  ~SkipInitialization();
  SkipInitialization(const SkipInitialization&) = delete;
  SkipInitialization& operator=(const SkipInitialization&) = delete;

  static bool active();  // on this thread
  static constexpr int64_t kSmallestBytes = int64_t{1} << 20;
};

}  // namespace keel
