// Layer names in Keras's style.
#pragma once

#include <string>

namespace keel {

// Converts a class name: "BatchNormalization" -> "batch_normalization", "PReLU" -> "p_re_lu",
// "Conv1D" -> "conv1d".
std::string to_snake_case(const std::string& class_name);

// Returns the class name in snake case. From the second layer of the class in this process on, a
// number is appended: "dense", "dense_1", ... Thread safe.
std::string unique_layer_name(const std::string& class_name);

// Removes the number that unique_layer_name() appended: "dense_3" -> "dense", "dense" -> "dense".
std::string without_number(const std::string& name);

// Resets the counters of unique_layer_name(), so that names start without a number again
// (keras.backend.clear_session).
void clear_session();

}  // namespace keel
