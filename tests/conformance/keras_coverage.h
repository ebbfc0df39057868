// The page that says what of Keras 3's public API there is here.
#pragma once

#include <string>
#include <vector>

namespace keel::conformance {

// Markdown, made from the registries and keras_api().
std::string keras_coverage_page();

// Keras's names of the callbacks that there are, which have no registry.
std::vector<std::string> callback_names();

}  // namespace keel::conformance
