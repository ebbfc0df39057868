// Paths of variables of layers in layers, as Keras has them: "lstm/lstm_cell/kernel".
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Puts "<owner>/" before the path of each variable of `part`: for layers that build their parts.
inline void prepend_to_paths(const std::string& owner, const Layer& part) {
  for (const Variable& v : part.variables()) v.set_path(owner + "/" + v.path());
}

}  // namespace keel
