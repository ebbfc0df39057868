// keras_model_of() replaces the layers of a model that Keras does not have by layers of Keras.
#pragma once

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/min_count.h>

namespace keel {

// Returns a functional model that computes the same predictions as `model`, in which layers of
// Keras replace every TPUEmbedding, DistributedEmbedding, DotInteraction and FeatureCross. They are
// also replaced in nested functional models, whose inputs must be dense. The tables are copied, and
// all other layers are shared. The result is not compiled. A model without such layers is returned
// unchanged. Other layers of the package keras_rs (EmbedReduce, DotInteraction with skip_gather)
// are kept, as are those in models that are not functional; Keras needs keras_rs to load them.
//
// - A dense feature of TPUEmbedding becomes an Embedding, followed by a Reshape if the layer drops
//   a last dimension of 1.
// - A ragged or sparse feature reads padded ids: its input is replaced by two dense ones of shape
//   [batch, length], where `length` is that of a sparse input, or unknown. They are the ids under
//   the same name, and float32 weights "<name>_weights", which are 1 for an id and 0 for an unused
//   position, whose id may be any valid one. If the feature has weights, their input keeps its name
//   and becomes dense instead. The rows are pooled by an Embedding and a Dot with the weights.
//   Combiner "mean" adds a Softmax over the used positions, "sqrtn" a UnitNormalization. The mean
//   of a feature with weights takes a UnitNormalization and a frozen Dense, which divide.
// - A sequence (max_sequence_length) has the same inputs with this length, and a Multiply in place
//   of the pooling. Longer sequences must be cut off before.
// - Keras's Embedding rejects invalid ids, whatever the IdPolicy. For IdPolicy::ignore(), give them
//   the weight 0 and any valid id; a dense feature also gets an input "<name>_weights" for this.
//   For IdPolicy::use_row(r), replace them by r.
// - A feature of a table with dynamic ids, and an Embedding with such a table, becomes an
//   IntegerLookup or StringLookup followed by an Embedding. The vocabulary is the ids in ascending
//   order, without those below `min_count`; the first rows of the Embedding are the fallback rows,
//   or a row of zeros. Keras needs TensorFlow for these layers.
// - A feature of DistributedEmbedding, of a table of either placement, becomes the same layers.
//   Dense ids [batch, n] are pooled by a GlobalAveragePooling1D. Padded ids have the length n of
//   the feature's input_shape [batch, n], if it is known: longer rows must be cut off before. Ids
//   that sparse cores would drop beyond a limit are looked up.
// - DotInteraction becomes one Dot per vector, with all vectors before it. FeatureCross becomes
//   Dense, Multiply and Add. Their sums may round differently.
//
// Throws
// - ValueError, naming the feature and the reason, for a feature that has no equivalent in Keras:
//   ragged or sparse ids of another rank than 2 or that are not an input of the model, an input
//   that two features need with different lengths, and outputs with several unknown dimensions;
// - ValueError, naming the feature and the reason, for a table with dynamic ids that is empty, has
//   string ids and hashed(k) with k > 1 (Keras uses another hash), or leaves out ids
//   (NotAdmitted::ignore()) under combiner mean or sqrtn of pooled features;
// - ValueError, naming the feature, for weights of dense ids of DistributedEmbedding and of
//   EmbedReduce, weights of another layout than the ids, and tables that are not float32;
// - ValueError, naming the layer, for other layers that Keras does not have, and for any such layer
//   in a model or layer that is not functional;
// - RuntimeError if the model has no weights yet, or inside a replica.
ModelHandle keras_model_of(const Model& model, const MinCount& min_count = {});

// Returns the first layer, among `layer` and its sublayers, that Keras does not have, or null if
// there is none. Custom classes are not checked.
const Layer* unknown_to_keras(const Layer& layer);

}  // namespace keel
