// What configs in files of Keras 1 and 2 mean that Keras 3 would take otherwise.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

// Whether Keras 1 or 2 computes a model with this config. `version` is the file's keras_version;
// empty: unknown, and the config's form decides.
bool is_of_keras2(const std::string& version, const Config& model_config);
// The keras_version of a legacy file; empty if it has none.
std::string keras_version_of(const Hdf5File& file);

// A config of Keras 1 or 2 as a config that computes the same in Keras 3:
//   hard_sigmoid     0.2 x + 0.5 in [0, 1], where Keras 3 has x / 6 + 0.5
//   GRU, GRUCell     reset_after is false where it is missing: Keras before 2.1.3 knew no other
Config from_keras2(const Config& config);

// The config with "_" in place of "/" in the names of layers, which layers here and Keras 3 refuse,
// and in the references of a graph to them. A number follows where the name is taken.
Config without_slashes_in_names(const Config& config);

}  // namespace keel
