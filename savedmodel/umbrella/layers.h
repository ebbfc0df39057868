// Keras's layers and models: Dense, Concatenate, ..., Sequential and functional models.
// keel/embedding.h contains the layers for large embedding tables.
#pragma once

#include <keel/layers/activation/activation.h>
#include <keel/layers/attention/attention.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/convolution/conv.h>
#include <keel/layers/convolution/conv_transpose.h>
#include <keel/layers/convolution/depthwise_conv.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/layer.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/preprocessing/hashing.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/preprocessing/text_vectorization.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/recurrent/simple_rnn.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/layers/reshaping/padding.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/reshaping/up_sampling.h>
#include <keel/layers/retrieval/brute_force_retrieval.h>
#include <keel/layers/training/model.h>
#include <keel/layers/visualization/visualization.h>
#include <keel/layers/wrappers/wrappers.h>
