// StringLookup: maps strings to indices (keras.layers.StringLookup).
#pragma once

#include <keel/layers/preprocessing/index_lookup.h>

namespace keel {

using StringLookupOptions = LookupOptions<std::string>;
using StringLookupLayer = IndexLookupLayer<std::string>;

namespace layers {
using StringLookup = LayerHandle<StringLookupLayer>;
}

}  // namespace keel
