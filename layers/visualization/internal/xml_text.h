// Text inside XML: SVG pictures and Graphviz's labels.
#pragma once

#include <string>

namespace keel {

// `text` with the five characters that XML reserves written as entities.
std::string xml_escaped(const std::string& text);

}  // namespace keel
