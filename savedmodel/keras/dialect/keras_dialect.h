// Converts configs in files of Keras 1 and 2 whose meaning has changed in Keras 3.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

// Returns true if a model config was written by Keras 1 or 2. `version` is the file's
// keras_version. If it is empty, the form of the config decides.
bool is_of_keras2(const std::string& version, const Config& model_config);
// Returns the keras_version of a legacy file, or an empty string if it has none.
std::string keras_version_of(const Hdf5File& file);

// Converts a config of Keras 1 or 2 to a config that computes the same in Keras 3:
//   hard_sigmoid     0.2 x + 0.5 clipped to [0, 1]; Keras 3 computes x / 6 + 0.5
//   GRU, GRUCell     a missing reset_after becomes false, the only behavior before Keras 2.1.3
Config from_keras2(const Config& config);

// Returns true if a keras_version is 3.16 or later.
bool is_keras_3_16_or_later(const std::string& version);
// Ends the version in files of this library that have a `training` argument of a call.
inline constexpr char kExplicitTraining[] = "+explicit-training";
// Returns true for a file whose graphs have the default of call(training=...) for each layer, as
// Keras 3.0 to 3.15 write it. These values mean nothing there: predict() and fit() decide. Later
// versions and this library write and obey values that the caller passed. Keras 2 did so too.
// Without a version, the form of the config decides.
bool records_default_training(const std::string& version, const Config& model_config);
// Returns a config without the `training` arguments of the calls in its graphs.
Config without_training(const Config& config);
// Returns true if a call in a graph of the config has a `training` argument.
bool has_training(const Config& config);

// Returns a name with "_" for each "/".
std::string plain_name(std::string name);
// Replaces "/" by "_" in the names of layers and in references to them, because this library and
// Keras 3 reject "/". Appends a number if the new name is already used.
Config without_slashes_in_names(const Config& config);

}  // namespace keel
