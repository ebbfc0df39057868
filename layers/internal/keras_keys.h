// The keys of layer configs in Keras's files that no parameter of a layer here stands for.
#pragma once

#include <string>

#include <keel/framework/config/config.h>

namespace keel {

// The class here that stands for Keras's: without the package keras_rs; ReLU for ThresholdedReLU;
// GroupQueryAttention for GroupedQueryAttention, as legacy files have it.
std::string class_from_keras(const std::string& class_name);

// A config that real Keras wrote (2 or 3) for such a class, in the terms of the layer here: keys
// that are nothing but a default are dropped, names that only Keras 2 has become those of now.
// Configs of classes named "Package>Class" come back as they are. A new layer needs an entry there
// only if Keras writes keys that it has no parameter for.
// NotImplementedError, naming layer and key, if a key asks for what is not offered, and for Lambda.
Config from_keras(const std::string& class_name, Config config);

// A config of a layer here as both Keras 2 and Keras 3 read it from files: the inverse.
Config to_keras(const std::string& class_name, Config config);

}  // namespace keel
