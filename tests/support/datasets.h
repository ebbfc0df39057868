// Small datasets.
#pragma once

#include <cstdint>

#include <keel/framework/data/dataset.h>

namespace keel::testing_support {

// The int64 scalars 0, 1, ..., n - 1.
data::Dataset range_dataset(int64_t n);

}  // namespace keel::testing_support
