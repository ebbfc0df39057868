// Keras's paths of variables of nested layers: "lstm/lstm_cell/kernel".
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Prepends "<owner>/" to the path of each variable of `part`. For layers that build their sublayers
// themselves.
inline void prepend_to_paths(const std::string& owner, const Layer& part) {
  for (const Variable& v : part.variables()) v.set_path(owner + "/" + v.path());
}

}  // namespace keel
