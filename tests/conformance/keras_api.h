// The public names of Keras 3, from which the coverage page is generated.
#pragma once

#include <string>
#include <vector>

namespace keel::conformance {

// Names of one section. Those that Keel does not offer share one reason.
struct KerasNames {
  std::string why_missing;  // reason shown for missing classes; empty: "not implemented yet"
  std::vector<std::string> names;
};

struct KerasSection {
  std::string title;  // "Layers"
  std::string where;  // "keras.layers"
  std::vector<KerasNames> groups;
};

// Returns the classes and activations of Keras 3.16, without aliases, base classes and functions
// that create or read objects ("get", "serialize").
const std::vector<KerasSection>& keras_api();

}  // namespace keel::conformance
