// keras_model_of() replaces the layers of a model that Keras does not have by layers of Keras.
#pragma once

#include <keel/layers/training/model.h>

namespace keel {

// Returns a functional model that computes the same predictions as `model`, in which layers of
// Keras replace every TPUEmbedding, DotInteraction and FeatureCross. They are also replaced in
// nested functional models, whose inputs must be dense. The tables are copied, and all other layers
// are shared. The result is not compiled. A model without such layers is returned unchanged. Other
// layers of the package keras_rs (EmbedReduce, DotInteraction with skip_gather) are kept, as are
// those in models that are not functional; Keras needs keras_rs to load them.
//
// - A dense feature of TPUEmbedding becomes an Embedding, followed by a Reshape if the layer drops
//   a last dimension of 1.
// - A sparse feature needs an input [batch, length] of known length. The input is replaced by two
//   dense ones of this shape: ids under the same name, and float32 weights "<name>_weights", which
//   are 1 for an id and 0 for an unused position, whose id may be any valid one. If the feature has
//   weights, their input keeps its name and becomes dense instead. The rows are pooled by an
//   Embedding and a Dot with the weights. Combiner "mean" adds a Softmax over the used positions,
//   and "sqrtn" a UnitNormalization.
// - DotInteraction becomes one Dot per vector, with all vectors before it. FeatureCross becomes
//   Dense, Multiply and Add. Their sums may round differently.
//
// Throws
// - ValueError, naming the feature and the reason, for a feature that has no equivalent in Keras:
//   ragged ids, sparse ids of unknown length or that are not an input of the model, sequences, an
//   IdPolicy that ignores or replaces invalid ids, and the mean of a feature with weights;
// - ValueError, naming the layer, for other layers that Keras does not have, and for any such layer
//   in a model or layer that is not functional;
// - RuntimeError if the model has no weights yet, or inside a replica.
ModelHandle keras_model_of(const Model& model);

// Returns the first layer, among `layer` and its sublayers, that Keras does not have, or null if
// there is none. Custom classes are not checked.
const Layer* unknown_to_keras(const Layer& layer);

}  // namespace keel
