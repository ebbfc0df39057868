// Rewrites models so that they consist of layers that Keras has.
#pragma once

#include <keel/layers/training/model.h>

namespace keel {

// Returns a functional model that makes the same predictions as `model`. Keras layers replace every
// TPUEmbedding, DotInteraction and FeatureCross, including those in nested functional models that
// have dense inputs. Other layers are shared with `model`; weights are copied. The result is not
// compiled. A model without such layers is returned unchanged. Other layers of the package keras_rs
// (EmbedReduce, DotInteraction with skip_gather), and such layers in models that are not
// functional, are kept: Keras needs keras_rs to load them.
//
//   - A dense feature becomes Embedding, followed by Reshape if the layer drops a last dimension
//     of 1.
//   - A sparse input [batch, length] of known length becomes two dense inputs: the ids under the
//     same name, and float32 weights "<name>_weights". The weight is 1 for a slot with an id and 0
//     for an empty slot, whose id may be any valid id. If the feature has its own weights, they
//     keep their name and become dense. Embedding and a Dot with the weights pool the rows. Softmax
//     over the slots with ids scales them for mean, and UnitNormalization for sqrtn.
//   - DotInteraction becomes one Dot per vector, of the preceding vectors with this vector.
//     FeatureCross becomes Dense, Multiply and Add. Sums may round differently.
//
// Throws ValueError, naming the feature and the reason, if Keras has no such layers: ragged ids,
// sparse ids of unknown length or that are not an input of the model, sequences, invalid ids that
// are dropped or replaced, and the mean of a feature with weights. Throws ValueError, naming the
// layer, for other layers that Keras does not have, and for any such layer in a model or layer that
// is not functional. Throws RuntimeError if the model has not been built.
ModelHandle keras_model_of(const Model& model);

// Returns the first layer that Keras does not have: `layer` itself or a layer in it. Returns null
// if Keras has all of them.
const Layer* unknown_to_keras(const Layer& layer);

}  // namespace keel
