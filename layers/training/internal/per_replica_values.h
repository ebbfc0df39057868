// Gathering and setting the values of a variable that differ between replicas.
#pragma once

#include <keel/distribute/strategy.h>

namespace keel {

// Returns the values in all replicas, shape [replicas, dims of the variable]. Collective over
// processes; call it outside the replicas.
Tensor values_of_replicas(distribute::Strategy& strategy, const Variable& variable);
// Assigns values[i] to the variable in replica i. Throws ValueError for another shape or dtype.
void set_values_of_replicas(distribute::Strategy& strategy, const Variable& variable,
                            const Tensor& values);

}  // namespace keel
