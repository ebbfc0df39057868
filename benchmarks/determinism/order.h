// The orders that sums over positions and replicas are made in.
#pragma once

namespace keel::bench {

enum class Order {
  kFixed,  // the same in every run
  kFree,   // as what is summed comes
};

}  // namespace keel::bench
