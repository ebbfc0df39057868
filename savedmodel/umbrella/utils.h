// Functions and layers of keras.utils, in keel::utils: FeatureSpace, to_categorical, pad_sequences,
// split_dataset and others.
#pragma once

#include <keel/layers/utils/arrays.h>
#include <keel/layers/utils/datasets.h>
#include <keel/layers/utils/feature_space.h>
#include <keel/layers/utils/saving.h>
