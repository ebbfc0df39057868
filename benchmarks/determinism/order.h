// The orders of sums over positions and replicas.
#pragma once

namespace keel::bench {

enum class Order {
  kFixed,  // the same in every run
  kFree,   // the order of arrival
};

}  // namespace keel::bench
