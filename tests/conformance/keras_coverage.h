// Generates the page that lists which part of Keras 3's public API Keel offers.
#pragma once

#include <string>
#include <vector>

namespace keel::conformance {

// Returns the page as Markdown, generated from the registries and keras_api().
std::string keras_coverage_page();

// Returns Keras's names of the callbacks that Keel offers. Callbacks have no registry.
std::vector<std::string> callback_names();

}  // namespace keel::conformance
