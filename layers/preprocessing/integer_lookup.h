// IntegerLookup: maps integers to contiguous indices (keras.layers.IntegerLookup).
#pragma once

#include <keel/layers/preprocessing/index_lookup.h>

namespace keel {

using IntegerLookupOptions = LookupOptions<int64_t>;
using IntegerLookupLayer = IndexLookupLayer<int64_t>;

namespace layers {
using IntegerLookup = LayerHandle<IntegerLookupLayer>;
}

}  // namespace keel
