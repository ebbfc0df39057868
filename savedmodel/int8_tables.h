// with_int8_tables() quantizes the embedding tables of a model to int8.
#pragma once

#include <keel/layers/training/model.h>

namespace keel {

// Returns a model in which each Embedding has an int8 table, like after Embedding.quantize("int8")
// (layers/core/embedding.h). Embeddings are replaced in Functional and Sequential models, at any
// depth of nesting, but not inside other layers. All other layers are shared with `model`, which
// does not change. The result is not compiled. If there is no table to quantize, returns `model`
// itself.
//
// Throws
// - ValueError for a table that is not float32 or has values that are not finite;
// - ValueError for a layer with tables that Keras does not have, such as TPUEmbedding; apply
//   keras_model_of() (for_keras.h) first, which replaces TPUEmbedding by Embedding;
// - ValueError for a model that contains an Embedding but is neither Functional nor Sequential;
// - RuntimeError if the model has no weights yet, or inside a replica.
ModelHandle with_int8_tables(const Model& model);

}  // namespace keel
