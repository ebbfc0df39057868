// Models with layers of this library alone, rewritten into layers that Keras has.
#pragma once

#include <keel/layers/training/model.h>

namespace keel {

// A functional model that predicts what `model` predicts, in which layers of Keras stand for every
// TPUEmbedding, DotInteraction and FeatureCross, also in functional models that are layers of it
// and have dense inputs; other layers are the same objects, weights are copied. It is not compiled.
// A model that has no such layers is returned as it is. Other layers of the package keras_rs
// (EmbedReduce, DotInteraction with skip_gather), and those in models that are not functional, stay
// what they are: Keras needs keras_rs to load them.
//
//   A dense feature becomes Embedding, and Reshape where the layer drops a last dimension of 1.
//   A sparse input [batch, length] of known length becomes two dense ones: ids of its own name, and
//   float32 weights "<name>_weights" of the ids, 1 for a slot with an id and 0 for an empty one
//   (whose id may be any of the table's). Where the feature has weights of its own, those keep
//   their name and are dense too. Rows are pooled by Embedding and a Dot with the weights; scaled
//   for mean by Softmax over the slots with ids, for sqrtn by UnitNormalization.
//
//   DotInteraction becomes a Dot of the vectors before each one with that one, and FeatureCross
//   Dense, Multiply and Add. Sums may round differently.
//
// ValueError, naming the feature and the reason, where Keras has no such layers: ragged ids, sparse
// ones of any length or that are no input of the model, sequences, odd ids that are left out or
// replaced, the mean of a feature with weights. ValueError, naming the layer, for other layers that
// Keras does not have, and for any in a model or layer that is not functional.
// RuntimeError if the model has no weights yet.
ModelHandle keras_model_of(const Model& model);

// The first layer, the given one or one in it, that Keras does not have; null if it has all.
const Layer* unknown_to_keras(const Layer& layer);

}  // namespace keel
