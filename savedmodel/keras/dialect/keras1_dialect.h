// Converts configs of Keras 1 to those of Keras 2.
#pragma once

#include <keel/framework/config/config.h>

namespace keel {

// Returns a config in which the layers of Keras 1 have the classes and arguments of Keras 2:
// Convolution2D(nb_filter, nb_row, nb_col, border_mode, subsample, dim_ordering) becomes
// Conv2D(filters, kernel_size, padding, strides, data_format), Merge the class of its mode, and so
// on. Objects that have no such arguments are returned unchanged, so that the function may be
// applied to configs of any version of Keras.
//
// A Sequential that begins with a Merge of models becomes a functional model with the inputs of all
// these models and their layers, which Keras 1 lists in this order in files, too.
//
// Throws NotImplementedError, naming layer and argument, for what Keras 2 cannot express: the modes
// 1 and 2 of BatchNormalization, "cos" and functions of Merge, and EigenvalueRegularizer.
Config from_keras1(const Config& config);

}  // namespace keel
