// The public names of Keras 3, to say which of them there are here.
#pragma once

#include <string>
#include <vector>

namespace keel::conformance {

// Names of one section that are there for one reason, or missing for one.
struct KerasNames {
  std::string why_missing;  // reason shown for missing classes; empty: "not implemented yet"
  std::vector<std::string> names;
};

struct KerasSection {
  std::string title;  // "Layers"
  std::string where;  // "keras.layers"
  std::vector<KerasNames> groups;
};

// Classes and activations of Keras 3.16. Aliases, base classes and what makes or reads objects
// ("get", "serialize") are left out.
const std::vector<KerasSection>& keras_api();

}  // namespace keel::conformance
