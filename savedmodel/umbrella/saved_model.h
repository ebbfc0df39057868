// Saving and loading: .keras, .h5 and .weights.h5 files, signatures, checkpoints.
#pragma once

#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/id_limit_files.h>
#include <keel/savedmodel/keras/for_keras.h>
#include <keel/savedmodel/model_json.h>
#include <keel/savedmodel/saved_model.h>
