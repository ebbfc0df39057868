// Translates layer configs between Keras's files and this library, including keys that have no
// counterpart among the parameters of the layers here.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// Returns the class of this library that corresponds to a Keras class. The package prefix keras_rs
// is removed. ThresholdedReLU maps to ReLU, and GroupedQueryAttention, the name in legacy files, to
// GroupQueryAttention.
std::string class_from_keras(const std::string& class_name);

// Converts a config that Keras 2 or 3 wrote for `class_name` to the parameters of the layer here.
// - Keys without a counterpart are dropped if they hold their default. `ignored_keys` lists them in
//   the form of ClassTraits::ignored_keys.
// - Keras 2 names are mapped to Keras 3 names.
// - Configs of classes named "Package>Class" are returned unchanged.
// Throws NotImplementedError, naming layer and key, if a key requests an unsupported feature.
Config from_keras(const std::string& class_name, const std::string& ignored_keys, Config config);

// Converts a config of a layer here to a form that both Keras 2 and Keras 3 read from files. This
// is the inverse of from_keras().
Config to_keras(const std::string& class_name, Config config);

}  // namespace keel
