// CollectiveError: an error after which a job of several processes can continue.
#pragma once

#include <keel/framework/base/errors.h>

namespace keel::distribute {

// Thrown by all replicas of all processes in the same call, before anything has changed, for
// example because a table is full.
class CollectiveError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

}  // namespace keel::distribute
