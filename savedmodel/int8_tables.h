// Models whose tables are in 8 bits.
#pragma once

#include <keel/layers/training/model.h>

namespace keel {

// A model in which the table of each Embedding is in int8, as Embedding.quantize makes it
// (layers/core/embedding.h); other layers are the same objects, and the given model stays what it
// is. Functional and Sequential models are looked through, also those in each other. Embedding
// layers in any other layer keep their tables, as do layers of other classes. It is not compiled,
// unless there was no table to rewrite: then it is the model itself.
//
// ValueError for a table that is not float32 or not finite; for layers that only this library has
// and that hold tables, such as TPUEmbedding (keras_model_of, for_keras.h, puts Embedding in the
// place of that one); and for a model of another class that has an Embedding.
// RuntimeError if the model has no weights yet.
ModelHandle with_int8_tables(const Model& model);

}  // namespace keel
