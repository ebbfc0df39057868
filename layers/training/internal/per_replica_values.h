// What each replica has of a variable that is its own, brought together and dealt out.
#pragma once

#include <keel/distribute/strategy.h>

namespace keel {

// The values of all replicas, [replicas, dims of the variable]. Collective; outside of replicas.
Tensor values_of_replicas(distribute::Strategy& strategy, const Variable& variable);
// The inverse. ValueError for another shape.
void set_values_of_replicas(distribute::Strategy& strategy, const Variable& variable,
                            const Tensor& values);

}  // namespace keel
