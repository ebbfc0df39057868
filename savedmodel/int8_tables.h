// Rewrites models so that their embedding tables are stored in int8.
#pragma once

#include <keel/layers/training/model.h>

namespace keel {

// Returns a model in which the table of each Embedding is stored in int8, as Embedding.quantize
// does (layers/core/embedding.h). Other layers are shared with `model`, and `model` does not
// change. Nested functional and sequential models are rewritten too. Embedding layers inside any
// other layer, and layers of other classes, keep their tables. The result is not compiled. If there
// is no table to rewrite, the result is `model` itself.
//
// Throws ValueError for a table that is not float32 or not finite, for layers that only this
// library has and that hold tables, such as TPUEmbedding (keras_model_of in for_keras.h replaces it
// by Embedding), and for a model of another class that contains an Embedding. Throws RuntimeError
// if the model has not been built.
ModelHandle with_int8_tables(const Model& model);

}  // namespace keel
