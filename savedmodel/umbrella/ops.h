// Includes the functions of keras.ops: keel::keras_ops and keel::keras_ops::image.
//
//   namespace K = keel::keras_ops;
//   Tensor y = K::softmax(K::matmul(x, w) + b, -1);
#pragma once

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/core.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/keras_ops/linalg.h>
#include <keel/autodiff/keras_ops/operand.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/keras_ops/signal.h>
#include <keel/autodiff/keras_ops/sorting.h>
#include <keel/autodiff/keras_ops/transforms.h>
#include <keel/layers/keras_ops/convolution.h>
#include <keel/layers/keras_ops/nn.h>
