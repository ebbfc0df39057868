// Names of layers, as Keras makes them.
#pragma once

#include <string>

namespace keel {

// "BatchNormalization" -> "batch_normalization", "PReLU" -> "p_re_lu", "Conv1D" -> "conv1d".
std::string to_snake_case(const std::string& class_name);

// The class name in snake case; from the second one in this process on with a number: "dense",
// "dense_1", ... Thread safe.
std::string unique_layer_name(const std::string& class_name);

// The name that unique_layer_name has numbered: "dense_3" -> "dense", "dense" -> "dense".
std::string without_number(const std::string& name);

// Forgets the numbers given out (keras.backend.clear_session): names start anew.
void clear_session();

}  // namespace keel
